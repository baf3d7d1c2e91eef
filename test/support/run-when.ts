import type { Context } from '../../src/app/context.js';
import type { RunState } from '../../src/run/state.js';
import { isFinished } from '../../src/run/state.js';

/** Resolves with the first state of a run that fits; rejects if the run is unknown. */
export async function runWhen(
  engine: Pick<Context, 'feed'>,
  runId: string,
  fits: (run: RunState) => boolean,
): Promise<RunState> {
  const watching = new AbortController();
  try {
    return await new Promise<RunState>((resolve, reject) => {
      const onState = (run: RunState): void => {
        if (fits(run)) resolve(run);
      };
      engine.feed.follow(runId, { from: 'now', onState, signal: watching.signal }).catch(reject);
    });
  } finally {
    watching.abort();
  }
}

/** Resolves when all runs have ended. */
export function allFinished(engine: Pick<Context, 'feed'>, runIds: readonly string[]): Promise<readonly RunState[]> {
  return Promise.all(runIds.map((runId) => runWhen(engine, runId, isFinished)));
}
