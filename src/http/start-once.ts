/** Starts of runs: one request, one run, however often it is sent (contract, section 2). */
import type { RouterContext } from '@koa/router';
import { AppendOutcomeUnknown } from '../errors.js';
import type { RunFailedData, RunRequestedData } from '../generated/schemas.js';
import { runStream } from '../run/events.js';
import { keyedRunId } from '../run/request.js';
import type { Answer } from './answer.js';
import type { ReadBody } from './body.js';
import { keyed, keyScope } from './idempotency.js';
import type { Edge } from './route.js';
import { runStart } from './wire.js';

/** How the run of a request is known. */
export type RunKey = Pick<RunRequestedData, 'runId' | 'keyHash' | 'bodyHash'>;

/** What a run begins with. */
export interface Beginning {
  readonly requested: RunRequestedData;
  /** Why it fails at once; null: it does not. */
  readonly failure: RunFailedData | null;
}

export interface Start {
  /** What was asked for. */
  readonly request: ReadBody<unknown>;
  /** Asked only for the first of equal requests. */
  readonly begin: (run: RunKey) => Beginning | Promise<Beginning>;
}

/** The answer to a start. A repeated one is answered before anything else is looked at, the blueprint too. */
export async function startOnce(ctx: RouterContext, edge: Edge, { request, begin }: Start): Promise<Answer> {
  const { key, keyHash, bodyHash, sentHash } = keyed(ctx, edge, request);
  const { uuid, sha256 } = edge.ambient;
  const runId = key === null ? uuid() : keyedRunId({ ...keyScope(ctx), key }, sha256);
  const run = { runId, keyHash, bodyHash };
  const begun = await edge.inTime(started(edge, { run, sentHash, begin }), outcomeUnknown(runId));
  return { status: 202, body: runStart(begun) };
}

async function started(
  { registry, log }: Edge,
  { run, sentHash, begin }: Pick<Start, 'begin'> & { readonly run: RunKey; readonly sentHash: string },
): Promise<RunRequestedData> {
  const { runId, keyHash, bodyHash } = run;
  const repeated = keyHash === null ? null : await registry.repeated(runId, [bodyHash, sentHash]);
  if (repeated !== null) return repeated;
  const { requested, failure } = await begin(run);
  const begun = await (failure === null ? registry.start(requested) : registry.refuse(requested, failure));
  if (begun === requested) log.info({ runId, blueprintId: requested.blueprintId }, 'run requested');
  return begun;
}

/** What a caller is told who has waited long enough for the log. */
export function outcomeUnknown(runId: string): () => AppendOutcomeUnknown {
  return () => new AppendOutcomeUnknown({ stream: runStream(runId) });
}
