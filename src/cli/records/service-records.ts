/** The records of a running service, read over its REST API. */
import { serverEvents } from '../../system/server-events.js';
import { BodyTooLarge } from '../../system/untrusted.js';
import type { System } from '../../system/system.js';
import { isEvent, readExport } from '../../audit/export.js';
import { RunCorrupt, RunUnknown } from '../../run/errors.js';
import type { FoldedRun, ForkPlan, ForkRequest, RunStart } from '../../generated/schemas.js';
import type { SchemaRegistry } from '../../api/schemas.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { Call, Reply } from '../client/rest.js';
import { ServiceRefused, jsonValue, openBody, replyReader, restCalls, signature } from '../client/rest.js';
import { ServiceLost } from '../client/channel.js';
import { isAway, openOutage } from '../client/retry.js';
import { verificationResult } from './record.js';
import { linesIn } from './record.js';
import type { RunRecords } from './record.js';
import { EventUnknown, isTerminal } from './record.js';

export interface ServiceOptions {
  /** Who asks; null: nobody. */
  readonly key: string | null;
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  readonly schemas: SchemaRegistry;
  /** Shows the user a notice, beside the output. */
  readonly notify: (text: string) => void;
  /** Aborts all calls. */
  readonly signal: AbortSignal;
}

export interface ServiceRecords extends RunRecords {
  /** A run's export, line by line. */
  lines(runId: string): AsyncGenerator<string>;
  /** Starts a run that goes on from an event of another. @throws {ForkUnknown} */
  fork(runId: string, request: ForkRequest): Promise<RunStart>;
  /** What that would do. */
  foresee(runId: string, request: ForkRequest): Promise<ForkPlan>;
}

/** @param url of the service, without trailing slash */
export function serviceRecords(url: string, options: ServiceOptions): ServiceRecords {
  const { key, system, schemas, signal, notify } = options;
  const rest = restCalls(url, key);
  const read = replyReader(url, schemas);
  const send = (method: 'GET' | 'POST', runId: string, path: string, call: Call = {}): Promise<Reply> =>
    withRunUnknown(runId, () => rest.send(method, pathOf(runId, path), { ...call, signal }));
  const body = (runId: string, path: string, headers: Readonly<Record<string, string>>) =>
    withRunUnknown(runId, () =>
      openBody(url, { path: pathOf(runId, path), headers: { ...headers, ...signature(key) }, system, signal }),
    );

  async function* exported(runId: string): AsyncGenerator<Uint8Array> {
    yield* (await body(runId, 'events', { Accept: 'application/x-ndjson' })) ?? [];
  }
  async function* lines(runId: string): AsyncGenerator<string> {
    try {
      yield* linesIn(exported(runId), runId);
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      throw new ServiceRefused({ status: 200, detail: `${url} answers something that is no export` });
    }
  }
  const state = async (runId: string, at: number | null): Promise<FoldedRun> => {
    const query = at === null ? '' : `?at=${at}`;
    return read(await send('GET', runId, `state${query}`), 'folded-run.json');
  };
  const seqOf = async (runId: string, hash: string): Promise<number | null> => {
    for await (const event of readExport(runId, lines(runId))) if (event.hash === hash) return event.seq;
    return null;
  };
  return {
    export: exported,
    lines,
    follow: (runId) =>
      followEvents(runId, {
        open: (last) => body(runId, 'stream', last < 0 ? {} : { 'Last-Event-ID': String(last) }),
        retryPolicy: { system, signal, notify },
      }),
    async state(runId, at) {
      try {
        return await state(runId, at);
      } catch (error) {
        if (at === null || !(error instanceof ServiceRefused && error.data.status === 422)) throw error;
        const { seq: last } = await state(runId, null);
        throw last < at ? new EventUnknown({ runId, at, last }) : error;
      }
    },
    async verify(runId, head) {
      const found = read(await send('GET', runId, 'verify'), 'verification.json');
      const { events, head_hash: headHash, first_difference: firstDifference } = found;
      const headSeq = head === null || head === headHash || !found.valid ? null : await seqOf(runId, head);
      // The service compares the record with its stored view, so that a missing tail would show.
      return verificationResult({ runId, events, headHash, firstDifference, isWhole: true, headSeq }, head);
    },
    fork: async (runId, request) => read(await send('POST', runId, 'fork', { body: request }), 'run-start.json'),
    foresee: async (runId, request) =>
      read(await send('POST', runId, 'fork?dry_run=1', { body: request }), 'fork-plan.json'),
    close: () => undefined,
  };
}

function pathOf(runId: string, path: string): string {
  return `/api/runs/${encodeURIComponent(runId)}/${path}`;
}

/** Turns the 404 of an unknown run into RunUnknown. Any other 404 comes from what is no council service. */
async function withRunUnknown<T>(runId: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const isUnknown = error instanceof ServiceRefused && error.data.status === 404 && error.message.includes(runId);
    throw isUnknown ? new RunUnknown({ runId }) : error;
  }
}

interface FollowDeps {
  /** Opens the stream of the events after one; null when nothing follows. */
  readonly open: (last: number) => Promise<AsyncGenerator<Uint8Array> | null>;
  readonly retryPolicy: Parameters<typeof openOutage>[0];
}

/** Over connections that may break: none left out, none twice. @throws {ServiceLost} or what the service refuses */
async function* followEvents(runId: string, { open, retryPolicy }: FollowDeps): AsyncGenerator<ExportedEvent> {
  const outage = openOutage(retryPolicy);
  let last = -1;
  for (let isJoined = false; ;) {
    try {
      const body = await open(last);
      if (body === null) return;
      isJoined = true;
      outage.end();
      for await (const event of eventsStreamed(body)) {
        if (event.seq <= last) continue;
        if (event.seq > last + 1) break;
        last = event.seq;
        yield event;
        if (isTerminal(event)) return;
      }
    } catch (error) {
      if (!isJoined || !isAway(error)) throw error;
    }
    if (await outage.sitOut()) continue;
    if (retryPolicy.signal.aborted) return;
    throw new ServiceLost({ runId });
  }
}

/** Longest event taken, in characters; as long as a line of an export. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024;
const STRICTLY = { isLastWhole: false, maxChars: MAX_EVENT_CHARS };

/** What comes whole; comments and the rest of a stream that breaks off are left out. @throws {ServiceRefused} */
async function* eventsStreamed(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ExportedEvent> {
  try {
    for await (const data of serverEvents(chunks, STRICTLY)) yield eventIn(data);
  } catch (error) {
    throw error instanceof BodyTooLarge ? noEvent() : error;
  }
}

function eventIn(data: string): ExportedEvent {
  const event = jsonValue(data);
  if (isEvent(event)) return event;
  throw noEvent();
}

function noEvent(): ServiceRefused {
  return new ServiceRefused({ status: 200, detail: 'The service streams something that is no event' });
}
