/** A subscription whose deliveries a test can inspect. */
import type { EventLog, Followed, Position, SubscribeOptions } from '../../src/eventlog/port.js';

export interface FollowingUnderWay {
  readonly collected: readonly Followed[];
  /** Resolves once a condition holds; rejects when the subscription ends before. */
  waitFor(condition: (collected: readonly Followed[]) => boolean): Promise<void>;
  /** Aborts and waits for the end. */
  stop(): Promise<void>;
  readonly ended: Promise<void>;
}

/** Collects from a subscription in the background. */
export function following(
  log: EventLog,
  after: Position | null,
  categories?: readonly string[],
  types?: SubscribeOptions['types'],
): FollowingUnderWay {
  const abort = new AbortController();
  const collected: Followed[] = [];
  const waiting = new Set<() => void>();
  const ended = (async () => {
    const wanted = { ...(categories && { categories }), ...(types && { types }) };
    for await (const followed of log.subscribe(after, { ...wanted, signal: abort.signal })) {
      collected.push(followed);
      for (const check of waiting) check();
    }
  })();
  ended.catch(() => undefined);
  const waitFor = async (condition: (collected: readonly Followed[]) => boolean): Promise<void> => {
    const met = new Promise<void>((resolve) => {
      const check = (): void => {
        if (!condition(collected)) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
    const over = ended.then(() => Promise.reject(new Error('The subscription ended early')));
    await Promise.race([met, over]);
  };
  const stop = async (): Promise<void> => {
    abort.abort();
    await ended;
  };
  return { collected, waitFor, stop, ended };
}
