/** The records of a running service, read with its client. */
import type { CouncilClient, ForkPlan, ForkRequest, FoldedRun, Run } from '../../client/client.js';
import { CouncilError as ServiceError, InvalidError, UnexpectedAnswerError } from '../../client/errors.js';
import { readExport } from '../../audit/export.js';
import { RunCorrupt, RunUnknown } from '../../run/errors.js';
import type { RunStart } from '../../generated/schemas.js';
import { present } from '../../system/element.js';
import type { ServiceOptions } from '../service-client.js';
import { followEvents, serviceClient } from '../service-client.js';
import type { RunRecords } from './record.js';
import { EventUnknown, linesIn, verificationResult } from './record.js';

export interface ServiceRecordsOptions extends ServiceOptions {
  /** Shows the user a notice, beside the output. */
  readonly notify: (text: string) => void;
  /** Aborts all calls. */
  readonly signal: AbortSignal;
}

export interface ServiceRecords extends RunRecords {
  /** A run's export, line by line. */
  lines(runId: string): AsyncGenerator<string>;
  /** Starts a run that continues another from one of its events. */
  fork(runId: string, request: ForkRequest): Promise<RunStart>;
  /** What a fork would do. Starts nothing. */
  planFork(runId: string, request: ForkRequest): Promise<ForkPlan>;
}

/** @param url of the service, without trailing slash */
export function serviceRecords(url: string, options: ServiceRecordsOptions): ServiceRecords {
  const { signal } = options;
  const council = serviceClient(url, options);
  const ofRun = <T>(runId: string, read: (run: Run) => Promise<T>): Promise<T> => readOfRun(council, runId, read);

  async function* exported(runId: string): AsyncGenerator<Uint8Array> {
    assertPathPart(runId);
    yield* withRunUnknown(runId, council.run(runId).export({ signal }));
  }
  async function* lines(runId: string): AsyncGenerator<string> {
    try {
      yield* linesIn(exported(runId), runId);
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      throw new UnexpectedAnswerError(`The answer of ${url} is not an export`, { status: 200 });
    }
  }
  const state = async (runId: string, at: number | null): Promise<FoldedRun> =>
    await ofRun(runId, (run) => run.state({ signal, ...(at !== null && { at }) }));
  const seqOf = async (runId: string, hash: string): Promise<number | null> => {
    for await (const event of readExport(runId, lines(runId))) if (event.hash === hash) return event.seq;
    return null;
  };
  return {
    export: exported,
    lines,
    events: (runId) => readExport(runId, linesIn(exported(runId), runId)),
    async *list({ from, to }) {
      for await (const { id } of council.runs.list({ from, to, children: true, sort: 'created_at', signal })) yield id;
    },
    follow(runId) {
      assertPathPart(runId);
      return withRunUnknown(runId, followEvents(url, runId, { ...options, isKnown: false }));
    },
    async state(runId, at) {
      try {
        return await state(runId, at);
      } catch (error) {
        if (at === null || !(error instanceof InvalidError)) throw error;
        const { seq: last } = await state(runId, null);
        throw last < at ? new EventUnknown({ runId, at, last }) : error;
      }
    },
    deliberation: (runId) => ofRun(runId, (run) => run.deliberation({ signal })),
    sources: (runId) => ofRun(runId, (run) => run.sources({ signal })),
    async verify(runId, head) {
      const found = await ofRun(runId, (run) => run.verify({ signal }));
      const { events, head_hash: headHash, first_difference: firstDifference } = found;
      const headSeq = head === null || head === headHash || !found.valid ? null : await seqOf(runId, head);
      // The service compares the record with its stored view, so it finds missing events at the end.
      return verificationResult({ runId, events, headHash, firstDifference, isComplete: true, headSeq }, head);
    },
    async fork(runId, request) {
      const { started } = await ofRun(runId, (run) => run.fork(request, { signal }));
      return present(started, 'answer to the fork');
    },
    planFork: (runId, request) => ofRun(runId, (run) => run.fork(request, { dryRun: true, signal })),
    close: () => undefined,
  };
}

/** The client throws a TypeError for an id that leads to another path. For a command such an id is unknown. */
function assertPathPart(runId: string): void {
  if (/^\.{0,2}$/.test(runId)) throw new RunUnknown({ runId });
}

/** Reads a run at a service. @throws {RunUnknown} */
export async function readOfRun<T>(council: CouncilClient, runId: string, read: (run: Run) => Promise<T>): Promise<T> {
  assertPathPart(runId);
  try {
    return await read(council.run(runId));
  } catch (error) {
    throw meaning(error, runId);
  }
}

/** Turns the answer for an unknown run into RunUnknown. */
async function* withRunUnknown<T>(runId: string, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    throw meaning(error, runId);
  }
}

function meaning(error: unknown, runId: string): unknown {
  return error instanceof ServiceError && error.code === 'run_unknown' ? new RunUnknown({ runId }) : error;
}
