/** Runs a council at a running service, with the client. */
import type { CouncilClient } from '../../client/client.js';
import { ConflictError, CouncilError as ServiceError, UnreachableError } from '../../client/client.js';
import type { ServiceOptions } from '../service-client.js';
import { followEvents, serviceClient, notifyOnce } from '../service-client.js';
import { AWAY_MS, isAway } from '../service-faults.js';
import { OutcomeUnknown } from './exit-codes.js';
import type { Decision, DriverOptions, RunDriver, RunOptions, Warn } from './driver.js';
import { progressOf } from './run-progress.js';

/** How long the command tries to cancel a run, in milliseconds. */
const CANCEL_DEADLINE_MS = 5_000;

export interface RemoteOptions extends DriverOptions, Pick<ServiceOptions, 'key'> {
  /** Aborted when the user cancels. */
  readonly cancelled: AbortSignal;
}

/** A driver of the service at an address. It sends nothing before the first call. */
export function remoteDriver(url: string, { notify, warn, cancelled, ...service }: RemoteOptions): RunDriver {
  const ended = new AbortController();
  const { signal } = ended;
  let forget = (): void => undefined;
  const end = (): void => ended.abort(new UnreachableError(url));
  const endSoon = (): void => {
    forget = service.system.after(CANCEL_DEADLINE_MS, end);
  };
  if (cancelled.aborted) endSoon();
  else cancelled.addEventListener('abort', endSoon);

  const council = serviceClient(url, { ...service, callMs: AWAY_MS, onWait: notifyOnce(notify) });
  return {
    place: `at ${url}`,
    start: (request) => startRun(request, { council, once: serviceClient(url, service), notify, warn, signal }),
    follow: (runId) => progressOf(followEvents(url, runId, { ...service, notify, signal, isKnown: true })),
    pause: async (runId) => (await council.run(runId).pause({ signal }))?.state ?? null,
    decide: (runId, seq, decision) => decide(council, runId, { seq, decision, signal }),
    async cancel(runId) {
      try {
        await cancel(serviceClient(url, { ...service, callMs: AWAY_MS }), runId, signal);
      } finally {
        end();
      }
    },
    result: (runId) => council.run(runId).status(),
    async close() {
      cancelled.removeEventListener('abort', endSoon);
      forget();
      end();
    },
  };
}

/** Has no effect on a run that has ended. */
async function cancel(council: CouncilClient, runId: string, signal: AbortSignal): Promise<void> {
  try {
    await council.run(runId).cancel({ signal });
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error;
  }
}

interface DecideOptions {
  readonly seq: number;
  readonly decision: Decision;
  readonly signal: AbortSignal;
}

/** Resolves with the reason of a refusal, or null if the decision is accepted. */
async function decide(
  council: CouncilClient,
  runId: string,
  { seq, decision, signal }: DecideOptions,
): Promise<string | null> {
  const pause = council.run(runId).pauseAt(seq);
  const how = { comment: decision.comment, review: decision.review, signal };
  try {
    if (decision.action === 'modify') await pause.modify(decision.override, how);
    else if (decision.action === 'approve') await pause.approve({ ...how, budget: decision.budget });
    else await pause.reject(how);
    return null;
  } catch (error) {
    if (error instanceof ServiceError && error.status !== null && error.status < 500) return error.message;
    throw error;
  }
}

// Starts a run exactly once, even if answers are lost.

/** Time limit of the clean-up after a start, in milliseconds. */
const CLEAN_UP_DEADLINE_MS = 5_000;

interface StartDeps {
  readonly council: CouncilClient;
  /** A client that does not retry. */
  readonly once: CouncilClient;
  readonly notify: (text: string) => void;
  readonly warn: Warn;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the id of the run. It saves a blueprint for the start and deletes it after: the run has its own copy. It
 * warns the user of a blueprint that it cannot delete.
 *
 * @throws {ServiceError | OutcomeUnknown}
 */
async function startRun({ blueprint: given, ...request }: RunOptions, deps: StartDeps): Promise<string> {
  const { once, notify, warn, signal } = deps;
  // Nothing has started yet, so the command does not wait for an unreachable service.
  await once.health({ signal });
  if (given === null) return await startOnce({ ...request, blueprint: null }, deps);
  const { id: _, ...draft } = given;
  const { id, warnings } = await once.blueprints.create(draft, { signal });
  warn(warnings);
  try {
    return await startOnce({ ...request, blueprint: id }, deps);
  } finally {
    await once.blueprints
      .delete(id, { signal: AbortSignal.timeout(CLEAN_UP_DEADLINE_MS) })
      .catch((error: unknown) =>
        notify(`Warning: cannot delete blueprint "${id}" at the service: ${messageOf(error)}`),
      );
  }
}

async function startOnce(
  {
    topic,
    isGodMode: godMode,
    blueprint,
    budget,
    matter,
  }: Omit<RunOptions, 'blueprint'> & { readonly blueprint: string | null },
  { council, signal }: StartDeps,
): Promise<string> {
  try {
    const { output_schema: outputSchema, ...rest } = matter;
    const options = { topic, godMode, blueprint, budget: budget ?? undefined, ...rest, outputSchema, signal };
    return (await council.runs.start(options)).id;
  } catch (error) {
    throw isAway(error) ? new OutcomeUnknown('Cannot tell whether the run has started', error) : error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
