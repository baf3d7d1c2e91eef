/** Reads that survive a lost connection: they resume after their last event if the server comes back in time. */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { System } from '../../system/system.js';
import { wait } from '../../system/async/deadline.js';
import { fieldOf } from '../../system/untrusted.js';
import { LogClosed, LogDenied, LogUnavailable, StreamLost, StreamRemoved } from '../errors.js';
import type { Position, RecordedEvent, StreamRange } from '../port.js';
import { answersTo } from './answers.js';
import type { Clients } from './clients.js';
import { isDeleted, isDenied } from './clients.js';
import { idleTimeout, ServerSilent } from './idle-timeout.js';
import type { ReadEvent, StreamNames } from './names.js';
import { eventIn } from './names.js';
import { newestRequest, streamRequest } from './read-messages.js';

export interface Reader {
  readonly clients: Clients;
  readonly names: StreamNames;
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  /** How long the server may send nothing while an answer is expected, in milliseconds. */
  readonly deadlineMs: number;
  /** Aborts with LogClosed. */
  readonly closing: AbortSignal;
}

/** The log's name and its position: all other events of the log come after it. */
export interface LogName {
  readonly identity: string;
  readonly position: Position;
  /** The version that the log needs (log-version.ts). */
  readonly version: number;
}

/** Wait between attempts to reach the server, in milliseconds. */
export const RETRY_MS = 100;

const EVERYTHING = Number.MAX_SAFE_INTEGER;
const WHOLE = { direction: 'forwards', from: null, max: EVERYTHING } as const;

/** A stream's events. @throws {StreamRemoved} */
export async function* streamEvents(
  reader: Reader,
  { serverStream, stream }: { readonly serverStream: string; readonly stream: string },
  range: StreamRange,
): AsyncGenerator<RecordedEvent> {
  const { direction = 'forwards' } = range;
  let from = range.from ?? null;
  let max = range.max ?? EVERYTHING;
  const next = (): ReadReq | null =>
    max <= 0 || from === -1 ? null : streamRequest({ serverStream, direction, from, max });
  const onDeleted = (): never => {
    throw new StreamRemoved({ stream });
  };
  for await (const read of eventsOf(reader, next, onDeleted)) {
    from = direction === 'forwards' ? read.revision + 1 : read.revision - 1;
    max -= 1;
    yield { ...read, stream };
  }
}

/** The server's events of all logs, newest first. */
export function newestFirst(reader: Reader, max = EVERYTHING): AsyncGenerator<ReadEvent> {
  return eventsOf(reader, () => newestRequest(max));
}

/** Resolves once the server has answered. @throws {LogUnavailable | LogClosed} */
export async function roundTrip(reader: Reader): Promise<void> {
  for await (const _ of newestFirst(reader, 1)) return;
}

/**
 * The log's name, or null if it has none yet. Its stream has one event with the name, then one for each version that the
 * log has needed since; the first version left none.
 */
export async function nameIn(reader: Reader): Promise<LogName | null> {
  const all = { ...WHOLE, serverStream: reader.names.identityStream };
  let name: LogName | null = null;
  for await (const { data, position } of eventsOf(reader, () => streamRequest(all))) {
    const found: unknown = JSON.parse(data);
    const [identity, version] = [fieldOf(found, 'identity'), fieldOf(found, 'version')];
    if (typeof identity === 'string') name ??= { identity, position, version: 1 };
    if (name !== null && typeof version === 'number') name = { ...name, version: Math.max(name.version, version) };
  }
  return name;
}

/**
 * Checks that a stream that must keep all its events still has its first one, if it ever had one.
 *
 * @throws {StreamLost} it was deleted or truncated
 */
export async function assertWhole(reader: Reader, stream: string): Promise<void> {
  const first = streamRequest({ ...WHOLE, serverStream: stream, max: 1 });
  const onDeleted = (): never => {
    throw new StreamLost({ stream });
  };
  for await (const { revision } of eventsOf(reader, () => first, onDeleted)) {
    if (revision > 0) throw new StreamLost({ stream });
    return;
  }
  // The server keeps a deleted stream's settings, which say from which revision or since when the stream begins.
  const settings = streamRequest({ serverStream: `$$${stream}`, direction: 'backwards', from: null, max: 1 });
  for await (const { data } of eventsOf(reader, () => settings)) {
    const found: unknown = JSON.parse(data);
    if (['$tb', '$maxAge'].some((name) => fieldOf(found, name) !== undefined)) throw new StreamLost({ stream });
  }
}

/**
 * The events of a read. After a failure, `next` asks for the rest of it, or returns null if nothing is left. A missing or
 * deleted stream has no events.
 *
 * @param onDeleted called if the stream was deleted for good
 *
 * @throws {LogUnavailable} the server sent nothing within the deadline, or denied access @throws {LogClosed}
 */
async function* eventsOf(
  reader: Reader,
  next: () => ReadReq | null,
  onDeleted: () => void = () => undefined,
): AsyncGenerator<ReadEvent> {
  const { clients, system, deadlineMs, closing } = reader;
  const waiting = idleTimeout(system, deadlineMs, [closing]);
  let last: unknown = null;
  try {
    for (let request = next(); request !== null; request = next()) {
      try {
        for await (const event of once(reader, request, waiting.signal)) {
          waiting.pause();
          yield event;
          waiting.resume();
        }
        return;
      } catch (error) {
        if (isDeleted(error)) return onDeleted();
        if (closing.aborted) throw new LogClosed();
        // Keeps an earlier error, because it says more than ServerSilent.
        if (last === null || !(error instanceof ServerSilent)) last = error;
        if (isDenied(error)) throw new LogDenied({ cause: clients.redacted(error) });
        if (waiting.signal.aborted) throw new LogUnavailable({ cause: clients.redacted(last) });
      }
      await wait(system, RETRY_MS, waiting.signal);
    }
  } finally {
    waiting.end();
  }
}

/** The events of one call. */
async function* once({ clients, names }: Reader, request: ReadReq, signal: AbortSignal): AsyncGenerator<ReadEvent> {
  for await (const batch of answersTo(request, clients, signal)) {
    for (const answer of batch) {
      if (answer.kind === 'event') yield eventIn(answer.event, names);
    }
  }
}
