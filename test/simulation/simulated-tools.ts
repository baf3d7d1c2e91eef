/** Web search and document search behind their ports: they answer in virtual time, and fail, break and hang now and then. */
import type { ContextDeps, ContextOverrides } from '../../src/app/context-deps.js';
import type { Draws, Process } from './scheduler.js';

export interface SimulatedToolsDeps {
  readonly process: Process;
  /** Of their own, so that a history without tools draws nothing for them. */
  readonly draws: Draws;
  /** Longest that a search takes, in milliseconds, unless it hangs. */
  readonly longestMs: number;
  /** Whether nothing is broken any more. */
  readonly isMended: () => boolean;
  /** A call is made; the function it returns is called with the place of what was found. */
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

  /** What is found has a place of its own; null: nothing is, for the search has failed. */
  const searched = (query: string, signal: AbortSignal): Promise<number | null> =>
    new Promise((resolve, reject) => {
      const found = onCall(query);
      const isHung = isIll(0.1);
      const delayMs = draws.random() * (draws.chance(0.6) ? 50 : longestMs);
      const hasFailed = isIll(0.2);
      const place = draws.whole(1, 1_000_000);
      // A search may go on although nobody waits for it.
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
      hasChunks: () => draws.chance(0.9),
      async search(query, _topK, { signal }) {
        const place = await searched(query, signal);
        if (place === null) throw new Error('The index is out');
        return [{ document: DOCUMENT, page: 1, chunk: place, text: query, score: 1 }];
      },
    },
  };
}
