/** Web search and document search in virtual time, which sometimes fail or hang. */
import type { ContextDeps, ContextOverrides } from '../../src/app/context-deps.js';
import type { Draws, Process } from './scheduler.js';

export interface SimulatedToolsDeps {
  readonly process: Process;
  /** Separate draws, so that a history without tools draws nothing for them. */
  readonly draws: Draws;
  /** Longest duration of a search in milliseconds, unless it hangs. */
  readonly longestMs: number;
  /** Whether all faults are repaired. */
  readonly isMended: () => boolean;
  /** Called at each search. The returned function takes the place of the result. */
  readonly onCall: (query: string) => (place: number) => void;
}

const DOCUMENT = 'd0c'.padEnd(64, '0');

export function simulatedTools({
  process,
  draws,
  longestMs,
  isMended,
  onCall,
}: SimulatedToolsDeps): Required<Pick<ContextDeps, 'webSearch'> & Pick<ContextOverrides, 'chunkSearch'>> {
  const isIll = (share: number): boolean => draws.chance(share) && !isMended();

  /** Returns a unique place of the result, or null if the search fails. */
  const searched = (query: string, signal: AbortSignal): Promise<number | null> =>
    new Promise((resolve, reject) => {
      // A process that has died within this turn searches nothing more.
      if (process.isDead) return;
      const found = onCall(query);
      const isHung = isIll(0.1);
      const delayMs = draws.random() * (draws.chance(0.6) ? 50 : longestMs);
      const hasFailed = isIll(0.2);
      const place = draws.whole(1, 1_000_000);
      // Some searches continue after an abort.
      const isDeaf = draws.chance(0.2);
      const stop = (): void => {
        if (isDeaf) return;
        cancel();
        reject(new Error('The search was ended'));
      };
      const cancel = process.after(delayMs, () => {
        if (isHung) return;
        signal.removeEventListener('abort', stop);
        if (!hasFailed) found(place);
        resolve(hasFailed ? null : place);
      });
      signal.addEventListener('abort', stop, { once: true });
    });

  let drawnAtMs = Number.NaN;
  let hasChunks = true;
  /** Changes only with the time: a decision reads it more than once. */
  const hasChunksNow = (): boolean => {
    const nowMs = process.system.monotonicMs();
    if (nowMs !== drawnAtMs) hasChunks = draws.chance(0.9);
    drawnAtMs = nowMs;
    return hasChunks;
  };

  return {
    webSearch: {
      name: 'simulated',
      async search(query, signal) {
        const place = await searched(query, signal);
        if (place === null) return { isFound: false, fault: 'It is out' };
        const result = { url: `https://example.org/${place}`, title: 'A page', snippet: query, score: null };
        return { isFound: true, results: [result] };
      },
    },
    chunkSearch: {
      hasChunks: hasChunksNow,
      async search(query, _topK, { signal }) {
        const place = await searched(query, signal);
        if (place === null) throw new Error('The index is out');
        return [{ document: DOCUMENT, page: 1, chunk: place, text: query, score: 1 }];
      },
    },
  };
}
