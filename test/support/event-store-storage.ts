/** An embedded log as a server's storage: streams of any name, appends at any revision, reads backwards. */
import { randomUUID } from 'node:crypto';
import { RevisionConflict } from '../../src/eventlog/errors.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, Position, RecordedEvent } from '../../src/eventlog/port.js';
import type { AskedAppend, Placed } from './event-store-messages.js';

export interface ServerEvent {
  readonly stream: string;
  readonly event: RecordedEvent;
  readonly ordinal: number;
}

export interface ServerStorage {
  append(asked: AskedAppend): Promise<Placed>;
  /** Deletes a stream for good. Its events stay among those of all streams, as until a scavenge. */
  tombstone(stream: string): Promise<void>;
  isDeleted(stream: string): boolean;
  /** A stream's events, without those that its `$maxCount` or `$tb` hides. */
  streamEvents(stream: string, range: { from: number | null; backwards: boolean }): AsyncIterable<ServerEvent>;
  allForwards(afterOrdinal: number): AsyncIterable<ServerEvent>;
  allBackwards(): AsyncIterable<ServerEvent>;
  subscribe(afterOrdinal: number, signal: AbortSignal): AsyncIterable<ServerEvent | 'caughtUp'>;
  close(): Promise<void>;
}

/** Prefix of stream names in the file, and of types such as `$metadata`, because none may begin with `$` there. */
const MARK = '_';

/** Type of the event of a deletion, with the stream as its data. A server writes it into the stream. */
const TOMBSTONE = '_$streamDeleted';

/** Events per page when reading backwards. */
const BACKWARDS_PAGE = 64;

/** Opens the storage in a file of its own, created when missing. */
export async function openServerStorage(file: string): Promise<ServerStorage> {
  const log = await openEmbeddedLog({ file });
  const settings = new Map<string, Settings>();
  /** When each event was appended, by id. Those from before count as appended when the file was opened. */
  const appendedMs = new Map<string, number>();
  const openedMs = Date.now();
  const deleted = new Set<string>();
  for await (const event of log.readAll(null)) {
    if (event.type === TOMBSTONE) deleted.add(event.data.slice(1, -1));
    else noteSettings(settings, nameOf(event), event.data);
  }

  async function append(asked: AskedAppend): Promise<Placed> {
    const { stream, events, expected } = asked;
    const at = expected === 'any' ? await headOf(log, stream) : expected;
    try {
      const marked = events.map((event) => ({ ...event, type: markedType(event.type) }));
      const { revision, position } = await log.append(MARK + stream, marked, at);
      for (const { id } of events) if (!appendedMs.has(id)) appendedMs.set(id, Date.now());
      noteSettings(settings, stream, events.at(-1)?.data ?? '');
      return { revision, ordinal: Number(position) };
    } catch (error) {
      if (expected === 'any' && error instanceof RevisionConflict) return append(asked);
      throw error;
    }
  }

  const placed = (event: RecordedEvent): ServerEvent => {
    const type = event.type.startsWith(MARK) ? event.type.slice(MARK.length) : event.type;
    const recordedAtMs = appendedMs.get(event.id) ?? openedMs;
    return { stream: nameOf(event), event: { ...event, type, recordedAtMs }, ordinal: Number(event.position) };
  };

  return {
    append,
    async tombstone(stream) {
      deleted.add(stream);
      const event = { id: randomUUID(), type: TOMBSTONE, data: `{${stream}}`, metadata: {} };
      await log.append(`${MARK}$tombstone-${event.id}`, [event], 'none');
    },
    isDeleted: (stream) => deleted.has(stream),
    async *streamEvents(stream, { from, backwards }) {
      const { $maxCount: maxCount = Infinity, $tb: truncateBefore = 0 } = settings.get(stream) ?? {};
      const head = maxCount === Infinity ? 'none' : await headOf(log, stream);
      const first = Math.max(truncateBefore, head === 'none' ? 0 : head - maxCount + 1);
      const start = backwards ? from : Math.max(first, from ?? 0);
      const range = {
        direction: backwards ? 'backwards' : 'forwards',
        ...(start !== null && { from: start }),
      } as const;
      for await (const event of log.readStream(MARK + stream, range)) {
        if (event.revision < first) return;
        yield placed(event);
      }
    },
    async *allForwards(after) {
      for await (const event of log.readAll(positionOf(after))) yield placed(event);
    },
    async *allBackwards() {
      for (let until = Number(await log.head()); until > 0; until -= BACKWARDS_PAGE) {
        const page: ServerEvent[] = [];
        const from = Math.max(0, until - BACKWARDS_PAGE);
        for await (const event of log.readAll(positionOf(from), { max: until - from })) page.push(placed(event));
        yield* page.reverse();
      }
    },
    async *subscribe(after, signal) {
      for await (const followed of log.subscribe(positionOf(after), { signal })) {
        if (followed.kind === 'event') yield placed(followed.event);
        else if (followed.kind === 'caughtUp') yield 'caughtUp';
      }
    },
    close: () => log.close(),
  };
}

function markedType(type: string): string {
  return type.startsWith('$') || type.startsWith(MARK) ? MARK + type : type;
}

function nameOf({ stream }: RecordedEvent): string {
  return stream.slice(MARK.length);
}

/** The embedded log's positions are ordinals with 16 digits. */
function positionOf(ordinal: number): Position | null {
  return ordinal === 0 ? null : (String(ordinal).padStart(16, '0') as Position);
}

async function headOf(log: EventLog, stream: string): Promise<'none' | number> {
  for await (const { revision } of log.readStream(MARK + stream, { direction: 'backwards', max: 1 })) return revision;
  return 'none';
}

/** How many of its newest events a stream shows, and from which revision on. */
interface Settings {
  readonly $maxCount?: number;
  readonly $tb?: number;
}

function noteSettings(settings: Map<string, Settings>, stream: string, data: string): void {
  if (stream.startsWith('$$')) settings.set(stream.slice(2), JSON.parse(data) as Settings);
}
