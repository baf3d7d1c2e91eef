/** The events of a run and what else the service knows of it. */
import { NotFoundError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import type { RunSource } from './source.js';

/** The source of a run in the service. */
export function liveSource(id: string): RunSource {
  const run = council.run(id);
  return {
    id,
    isLive: true,
    events: (from, signal) => run.events({ from, signal }),
    tokens: (signal) => run.tokens({ signal }),
    verify: (signal) => run.verify({ signal }),
    prompt: (step, signal) => run.prompt(step, { signal }),
    draft: (format) => run.draft({ format }),
    cited: (signal) => run.sources({ signal }),
    followChildren: async (...how) => await (await import('./live-children.js')).followChildren(id, ...how),
    documentNames: namesOfDocuments,
  };
}

/** The file names of documents by id, without those that are deleted. */
export async function namesOfDocuments(
  ids: readonly string[],
  ending: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const named = ids.map(async (id): Promise<readonly (readonly [string, string])[]> => {
    try {
      return [[id, (await council.documents.get(id, { signal: ending })).filename]];
    } catch (error) {
      if (error instanceof NotFoundError) return [];
      throw error;
    }
  });
  return new Map((await Promise.all(named)).flat());
}
