/** Drives a running service in the way of every client: REST for what is asked of it, the run's channel for its news. */
import type { Ambient } from '../ambient.js';
import type { RunResult } from '../generated/schemas.js';
import type { SchemaShelf } from '../http/schema.js';
import { openChannel } from './channel.js';
import type { Decision, RunDriver } from './driver.js';
import { followRun } from './following.js';
import type { Patience } from './persist.js';
import { persist } from './persist.js';
import type { RestCalls } from './rest.js';
import { restCalls, ServiceRefused } from './rest.js';
import { reading } from './reading.js';
import { startRun } from './starting.js';

/** Longest that the user's wish to end a run is tried to be delivered, in milliseconds. */
const CANCEL_DEADLINE_MS = 5_000;

export interface RemoteOptions {
  readonly ambient: Ambient;
  readonly schemas: SchemaShelf;
  /** Told of what the user should know beside the run. */
  readonly tell: (text: string) => void;
  /** The user's wish to end: nothing but the result is waited for much longer. */
  readonly cancelled: AbortSignal;
}

/** A driver of the service at an address; nothing is sent before the first call. */
export function remoteDriver(url: string, { ambient, schemas, tell, cancelled }: RemoteOptions): RunDriver {
  const rest = restCalls(url);
  const read = reading(url, schemas);
  const ended = new AbortController();
  const { signal } = ended;
  let forget = (): void => undefined;
  const endSoon = (): void => {
    forget = ambient.after(CANCEL_DEADLINE_MS, () => ended.abort());
  };
  if (cancelled.aborted) endSoon();
  else cancelled.addEventListener('abort', endSoon);

  const patience = { ambient, signal, tell };
  const result = async (runId: string, poll: { readonly signal?: AbortSignal } = {}): Promise<RunResult> =>
    read(await rest.send('GET', runPath(runId), poll), 'run-result.json');
  return {
    place: `at ${url}`,
    start: (order) => startRun(order, { rest, read, patience, idempotencyKey: ambient.uuid() }),
    follow: (runId) =>
      followRun(runId, {
        poll: () => result(runId, { signal }),
        channel: () => openChannel(url, runId, { schemas, ambient, signal }),
        patience,
      }),
    async pause(runId) {
      const ask = () => rest.send('GET', `${runPath(runId)}/state`, { signal });
      const state = read(await persist(ask, patience), 'god-mode-state.json');
      return state.paused ? state : null;
    },
    decide: (runId, seq, decision) => {
      const send = decisionSent(rest, runId, { seq, decision, signal, idempotencyKey: ambient.uuid() });
      return persist(send, patience);
    },
    async cancel(runId) {
      try {
        await cancel(rest, runId, patience);
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
async function cancel(rest: RestCalls, runId: string, { ambient, signal }: Patience): Promise<void> {
  const send = () => rest.send('POST', `${runPath(runId)}/cancel`, { signal });
  try {
    await persist(send, { ambient, signal, tell: () => undefined });
  } catch (error) {
    if (!(error instanceof ServiceRefused && error.data.status === 409)) throw error;
  }
}

interface Deciding {
  readonly seq: number;
  readonly decision: Decision;
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
}

/** Sends a decision, as often as it is called the same one; resolves with why it was refused. */
function decisionSent(
  rest: RestCalls,
  runId: string,
  { seq, decision, ...how }: Deciding,
): () => Promise<string | null> {
  const override = decision.action === 'modify' ? { modified_state: decision.override } : {};
  const call = { body: { action: decision.action, expected_seq: seq, ...override }, ...how };
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
