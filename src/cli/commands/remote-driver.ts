/** Drives a running service as any client does: commands over REST, progress over the run's channel. */
import type { System } from '../../system/system.js';
import type { RunResult } from '../../generated/schemas.js';
import type { SchemaRegistry } from '../../api/schemas.js';
import { followRun, openChannel } from '../client/channel.js';
import type { Decision, RunDriver, RunOptions } from './driver.js';
import type { RetryPolicy } from '../client/retry.js';
import { isAway, openOutage, retryWhileAway } from '../client/retry.js';
import type { ReplyReader, RestCalls } from '../client/rest.js';
import { ServiceRefused, ServiceUnreachable, replyReader, restCalls } from '../client/rest.js';
import { CouncilError } from '../../errors.js';

/** Longest that a cancellation is retried, in milliseconds. */
const CANCEL_DEADLINE_MS = 5_000;

export interface RemoteOptions {
  /** Who asks; null: nobody. */
  readonly key: string | null;
  readonly system: System;
  readonly schemas: SchemaRegistry;
  /** Shows the user a notice. */
  readonly notify: (text: string) => void;
  /** The user cancels: after that only the result is waited for. */
  readonly cancelled: AbortSignal;
}

/** A driver of the service at an address; nothing is sent before the first call. */
export function remoteDriver(url: string, { key, system, schemas, notify, cancelled }: RemoteOptions): RunDriver {
  const rest = restCalls(url, key);
  const read = replyReader(url, schemas);
  const ended = new AbortController();
  const { signal } = ended;
  let forget = (): void => undefined;
  const endSoon = (): void => {
    forget = system.after(CANCEL_DEADLINE_MS, () => ended.abort());
  };
  if (cancelled.aborted) endSoon();
  else cancelled.addEventListener('abort', endSoon);

  const retryPolicy = { system, signal, notify };
  const result = async (runId: string, poll: { readonly signal?: AbortSignal } = {}): Promise<RunResult> =>
    read(await rest.send('GET', runPath(runId), poll), 'run-result.json');
  return {
    place: `at ${url}`,
    start: (request) => startRun(request, { rest, read, retryPolicy, idempotencyKey: system.uuid() }),
    follow: (runId) =>
      followRun(runId, {
        poll: () => result(runId, { signal }),
        channel: () => openChannel(url, runId, { key, schemas, system, signal }),
        retryPolicy,
      }),
    async pause(runId) {
      const ask = () => rest.send('GET', `${runPath(runId)}/state`, { signal });
      const state = read(await retryWhileAway(ask, retryPolicy), 'god-mode-state.json');
      return state.paused ? state : null;
    },
    decide: (runId, seq, decision) => {
      const send = decisionSent(rest, runId, { seq, decision, signal, idempotencyKey: system.uuid() });
      return retryWhileAway(send, retryPolicy);
    },
    async cancel(runId) {
      try {
        await cancel(rest, runId, retryPolicy);
      } finally {
        ended.abort();
      }
    },
    result,
    async close() {
      cancelled.removeEventListener('abort', endSoon);
      forget();
      ended.abort();
    },
  };
}

function runPath(runId: string): string {
  return `/api/councils/run/${runId}`;
}

/** A run that has ended stays as it is; a service that is away is tried again until the signal. */
async function cancel(rest: RestCalls, runId: string, { system, signal }: RetryPolicy): Promise<void> {
  const send = () => rest.send('POST', `${runPath(runId)}/cancel`, { signal });
  try {
    await retryWhileAway(send, { system, signal, notify: () => undefined });
  } catch (error) {
    if (!(error instanceof ServiceRefused && error.data.status === 409)) throw error;
  }
}

interface DecideOptions {
  readonly seq: number;
  readonly decision: Decision;
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
}

/** A function that sends a decision, repeatably under one key; it resolves with why the decision was refused. */
function decisionSent(
  rest: RestCalls,
  runId: string,
  { seq, decision, ...how }: DecideOptions,
): () => Promise<string | null> {
  const override = decision.action === 'modify' ? { modified_state: decision.override } : {};
  const { action, comment = null } = decision;
  const call = { body: { action, expected_seq: seq, comment, ...override }, ...how };
  return async () => {
    try {
      await rest.send('POST', `${runPath(runId)}/approve`, call);
      return null;
    } catch (error) {
      if (error instanceof ServiceRefused && error.data.status < 500) return error.message;
      throw error;
    }
  };
}

// Starts a run exactly once, even when answers are lost.

/** Longest that the clean-up after a start is waited for, in milliseconds. */
const CLEAN_UP_DEADLINE_MS = 5_000;

/** It is unknown whether the service has started the run. */
export class StartUnknown extends CouncilError {
  readonly code = 'cli.start-unknown';
  constructor(cause: Error) {
    super(`Cannot tell whether the run has started: ${cause.message}`, {}, { cause });
  }
}

export interface StartDeps {
  readonly rest: RestCalls;
  readonly read: ReplyReader;
  readonly retryPolicy: RetryPolicy;
  /** Unique to this start. */
  readonly idempotencyKey: string;
}

/**
 * Resolves with the id of the run. A blueprint is saved for the start alone: the run keeps it frozen, the service does
 * not; the user is warned of one that cannot be deleted again.
 *
 * @throws {ServiceRefused | ServiceUnreachable | StartUnknown}
 */
async function startRun({ topic, isGodMode, blueprint }: RunOptions, deps: StartDeps): Promise<string> {
  const { rest, read, retryPolicy } = deps;
  const { notify, signal } = retryPolicy;
  const body = { input_topic: topic, god_mode: isGodMode };
  if (blueprint === null) return await startOnce('/api/councils/run', body, deps);
  const { name, nodes, edges } = blueprint;
  const draft = { name, nodes, ...(edges && { edges }) };
  const { id } = read(await rest.send('POST', '/api/councils/', { body: draft, signal }), 'blueprint.json');
  try {
    return await startOnce(`/api/councils/${id}/run`, body, deps);
  } finally {
    await rest
      .send('DELETE', `/api/councils/${id}`, { signal: AbortSignal.timeout(CLEAN_UP_DEADLINE_MS) })
      .catch((error: unknown) => notify(`Warning: blueprint "${id}" stays at the service: ${messageOf(error)}`));
  }
}

/** A start whose answer is lost is sent again with the same key: the service starts it once. */
async function startOnce(path: string, body: object, deps: StartDeps): Promise<string> {
  const { rest, read, retryPolicy, idempotencyKey } = deps;
  const outage = openOutage(retryPolicy);
  for (let isUnsure = false; ; isUnsure = true) {
    try {
      const reply = await rest.send('POST', path, { body, idempotencyKey, signal: retryPolicy.signal });
      return read(reply, 'run-start.json').run_id;
    } catch (error) {
      const isUnsent = error instanceof ServiceUnreachable && !error.data.isSent;
      if (!isAway(error) || (isUnsent && !isUnsure)) throw error;
      if (!(await outage.sitOut())) throw new StartUnknown(error);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
