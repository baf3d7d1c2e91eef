/**
 * The embedded log: SQLite in a worker thread behind the EventLog port. Appends that come while a transaction is being
 * synced share the next one, so many writers cost hardly more syncs than one.
 */
import { Worker } from 'node:worker_threads';
import {
  AppendInvalid,
  AppendOutcomeUnknown,
  AppendTooLarge,
  LogClosed,
  LogUnavailable,
  RevisionConflict,
} from '../errors.js';
import type { AppendResult, AppendRow, EventRow, RecordedRow, RowsPage } from './embedded-store.js';
import type { LogAnswer, LogRequest } from './embedded-worker.js';
import { liveFeed } from './live-feed.js';
import type {
  Appended,
  EventLog,
  ExpectedRevision,
  Followed,
  NewEvent,
  Position,
  RecordedEvent,
  StreamRange,
} from './port.js';
import { categoryOf, MAX_APPEND_BYTES } from './port.js';

/** Appends that may wait for their turn; more are refused as surely not sent. */
const MAX_QUEUED_APPENDS = 50_000;
/** Appends in one transaction at most: bounds what a single sync holds up. */
const MAX_BATCH = 1_000;
/** Events of other categories passed over before a subscriber is told how far it has come. */
const CHECKPOINT_EVERY = 1_000;

interface QueuedAppend {
  readonly row: AppendRow;
  readonly events: readonly NewEvent[];
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

type Call = LogRequest extends infer R ? (R extends LogRequest ? Omit<R, 'id'> : never) : never;

/** Opens the log in a file, which is created when missing. Rejects when another process has it open. */
export async function openEmbeddedLog({ file }: { readonly file: string }): Promise<EventLog> {
  const worker = new Worker(new URL('./embedded-worker.js', import.meta.url), { workerData: { file } });
  const log = new EmbeddedLog(worker);
  await log.opened();
  return log;
}

class EmbeddedLog implements EventLog {
  readonly #worker: Worker;
  readonly #feed = liveFeed();
  readonly #waiting = new Map<number, { resolve: (answer: LogAnswer) => void; reject: (error: Error) => void }>();
  #queue: QueuedAppend[] = [];
  #isWriting = false;
  #isFlushDue = false;
  #lastId = 0;
  #identity = '';
  #head = 0;
  /** Why nothing more is taken: closed, or broken. */
  #ended: Error | null = null;
  #closing: Promise<void> | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on('message', (answer: LogAnswer) => {
      const caller = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.kind === 'failed') caller?.reject(new Error(answer.message));
      else caller?.resolve(answer);
    });
    worker.on('error', (error: unknown) => this.#break(error));
    worker.on('exit', () => this.#break(new Error('The log worker has stopped')));
  }

  async opened(): Promise<void> {
    const answer = await this.#answerTo(0);
    if (answer.kind !== 'opened') throw new Error(`Unexpected answer of the log worker: ${answer.kind}`);
    this.#identity = answer.identity;
    this.#head = answer.head;
  }

  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const fault =
        this.#ended ??
        faultOf(stream, events) ??
        (this.#queue.length >= MAX_QUEUED_APPENDS ? new LogUnavailable() : null);
      if (fault !== null) return reject(fault);
      const row = { stream, expected: expected === 'none' ? -1 : expected, events: events.map(rowOf) };
      this.#queue.push({ row, events, resolve, reject });
      this.#flushSoon();
    });
  }

  async *readStream(stream: string, range: StreamRange = {}): AsyncIterable<RecordedEvent> {
    const isForwards = range.direction !== 'backwards';
    let from = range.from ?? (isForwards ? 0 : Number.MAX_SAFE_INTEGER);
    let left = range.max ?? Number.MAX_SAFE_INTEGER;
    while (left > 0 && from >= 0) {
      const { rows, scannedTo } = await this.#page({
        call: 'readStream',
        stream,
        range: { from, isForwards, max: left },
      });
      for (const row of rows) yield recordedOf(row);
      if (scannedTo === null) return;
      left -= rows.length;
      from = isForwards ? scannedTo + 1 : scannedTo - 1;
    }
  }

  async *readAll(
    after: Position | null,
    {
      categories,
      max = Number.MAX_SAFE_INTEGER,
    }: { readonly categories?: readonly string[]; readonly max?: number } = {},
  ): AsyncIterable<RecordedEvent> {
    const end = this.#head;
    let left = max;
    for (let scanned = numberOf(after); scanned < end && left > 0;) {
      const { rows, scannedTo } = await this.#page({ call: 'readAfter', position: scanned });
      if (scannedTo === null) return;
      scanned = scannedTo;
      for (const row of rows) {
        const event = recordedOf(row);
        if (row[0] > end || left === 0) return;
        if (!isWanted(event, categories)) continue;
        left -= 1;
        yield event;
      }
    }
  }

  async *subscribe(
    after: Position | null,
    { categories, signal }: { readonly categories?: readonly string[]; readonly signal: AbortSignal },
  ): AsyncIterable<Followed> {
    const listener = this.#feed.join(signal);
    const progress = { position: numberOf(after), skipped: 0 };
    let isCaughtUp = false;
    try {
      for (let live: readonly RecordedEvent[] | null = null; !signal.aborted; live = await listener.next()) {
        if (live === null) yield* this.#history(progress, categories, signal);
        else yield* pass(live, progress, categories);
        if (isCaughtUp || signal.aborted) continue;
        isCaughtUp = true;
        yield { kind: 'caughtUp' };
      }
    } finally {
      listener.leave();
    }
  }

  /** What is stored after a position, read until there is nothing more. */
  async *#history(
    progress: Progress,
    categories: readonly string[] | undefined,
    signal: AbortSignal,
  ): AsyncIterable<Followed> {
    while (!signal.aborted) {
      const { rows, scannedTo } = await this.#page({ call: 'readAfter', position: progress.position });
      if (scannedTo === null) return;
      yield* pass(rows.map(recordedOf), progress, categories);
    }
  }

  identity(): Promise<string> {
    return this.#ended === null ? Promise.resolve(this.#identity) : Promise.reject(this.#ended);
  }

  head(): Promise<Position | null> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    return Promise.resolve(this.#head === 0 ? null : positionOf(this.#head));
  }

  async ping(): Promise<void> {
    await this.#call({ call: 'ping' });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const wasBroken = this.#ended !== null;
    this.#ended ??= new LogClosed();
    this.#feed.close(this.#ended);
    while (this.#queue.length > 0 || this.#isWriting) await this.#flush();
    if (!wasBroken) await this.#send({ call: 'close' }).catch(() => undefined);
    await this.#worker.terminate();
  }

  /** Batches are sent once this turn's appends are in, and while one is being written the next one grows. */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#isWriting) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#isWriting) return await new Promise((resolve) => setImmediate(resolve));
    const batch = this.#queue.splice(0, MAX_BATCH);
    if (batch.length === 0) return;
    this.#isWriting = true;
    try {
      const answer = await this.#send({ call: 'append', batch: batch.map((each) => each.row) });
      if (answer.kind === 'appended') this.#settle(batch, answer.results);
    } catch (error) {
      for (const { row, reject } of batch) reject(new AppendOutcomeUnknown({ stream: row.stream }, { cause: error }));
      this.#break(error);
    } finally {
      this.#isWriting = false;
      if (this.#queue.length > 0) this.#flushSoon();
    }
  }

  /** Shows what is durable to the listeners, then to the writers. */
  #settle(batch: readonly QueuedAppend[], results: readonly AppendResult[]): void {
    const written: RecordedEvent[] = [];
    batch.forEach(({ row, events }, index) => {
      const result = results[index];
      if (result?.kind !== 'written') return;
      this.#head = result.position;
      const before = events.length - 1;
      events.forEach((event, place) => {
        const position = positionOf(result.position - before + place);
        written.push({ ...event, stream: row.stream, revision: result.revision - before + place, position });
      });
    });
    this.#feed.publish(written);
    batch.forEach(({ row, resolve, reject }, index) => {
      const result = results[index];
      if (result === undefined) reject(new AppendOutcomeUnknown({ stream: row.stream }));
      else if (result.kind === 'conflict') reject(conflictOf(row, result.actual));
      else resolve({ revision: result.revision, position: positionOf(result.position) });
    });
  }

  /** Nothing is retried after a failed write or a dead worker: the file cannot be trusted until it is opened anew. */
  #break(cause: unknown): void {
    if (this.#ended === null) this.#ended = new LogUnavailable({ cause });
    this.#feed.close(this.#ended);
    for (const { reject } of this.#queue.splice(0)) reject(this.#ended);
    for (const caller of this.#waiting.values())
      caller.reject(cause instanceof Error ? cause : new Error(String(cause)));
    this.#waiting.clear();
  }

  async #page(call: Call): Promise<RowsPage> {
    const answer = await this.#call(call);
    if (answer.kind !== 'page') throw new Error(`Unexpected answer of the log worker: ${answer.kind}`);
    return answer.page;
  }

  async #call(call: Call): Promise<LogAnswer> {
    if (this.#ended !== null) throw this.#ended;
    return await this.#send(call).catch((cause: unknown) => {
      throw new LogUnavailable({ cause });
    });
  }

  #send(call: Call): Promise<LogAnswer> {
    this.#lastId += 1;
    const answered = this.#answerTo(this.#lastId);
    this.#worker.postMessage({ ...call, id: this.#lastId } satisfies LogRequest);
    return answered;
  }

  #answerTo(id: number): Promise<LogAnswer> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

/** How far a subscriber has come, and how many events it was not shown since it was last told. */
interface Progress {
  position: number;
  skipped: number;
}

function* pass(
  events: readonly RecordedEvent[],
  progress: Progress,
  categories: readonly string[] | undefined,
): Iterable<Followed> {
  for (const event of events) {
    const position = numberOf(event.position);
    if (position <= progress.position) continue;
    progress.position = position;
    if (isWanted(event, categories)) {
      progress.skipped = 0;
      yield { kind: 'event', event };
    } else {
      progress.skipped += 1;
      if (progress.skipped % CHECKPOINT_EVERY === 0) yield { kind: 'checkpoint', position: event.position };
    }
  }
}

function isWanted(event: RecordedEvent, categories: readonly string[] | undefined): boolean {
  return categories === undefined || categories.includes(categoryOf(event.stream));
}

function faultOf(stream: string, events: readonly NewEvent[]): Error | null {
  if (stream === '') return new AppendInvalid({ stream, reason: 'a stream needs a name' });
  if (events.length === 0) return new AppendInvalid({ stream, reason: 'there are no events' });
  if (events.length > 1 && new Set(events.map((event) => event.id)).size < events.length) {
    return new AppendInvalid({ stream, reason: 'two events have the same id' });
  }
  if (!events.every((event) => event.data.startsWith('{'))) {
    return new AppendInvalid({ stream, reason: "an event's data is no JSON object" });
  }
  return sizeFaultOf(stream, events);
}

function sizeFaultOf(stream: string, events: readonly NewEvent[]): Error | null {
  const rows = events.map(rowOf);
  const chars = rows.reduce((sum, row) => sum + row[1].length + row[2].length + row[3].length, 0);
  if (chars * 3 <= MAX_APPEND_BYTES) return null;
  const bytes = rows.reduce((sum, row) => sum + Buffer.byteLength(row[1] + row[2] + row[3]), 0);
  return bytes <= MAX_APPEND_BYTES ? null : new AppendTooLarge({ stream, bytes, limit: MAX_APPEND_BYTES });
}

function conflictOf({ stream, expected }: AppendRow, actual: number): RevisionConflict {
  const named = (revision: number): 'none' | number => (revision < 0 ? 'none' : revision);
  return new RevisionConflict({ stream, expected: named(expected), actual: named(actual) });
}

function rowOf({ id, type, data, metadata }: NewEvent): EventRow {
  return [id, type, data, JSON.stringify(metadata)];
}

function recordedOf([position, revision, stream, id, type, data, metadata]: RecordedRow): RecordedEvent {
  const read: Record<string, string> = JSON.parse(metadata);
  return { id, type, data, metadata: read, stream, revision, position: positionOf(position) };
}

/** Sixteen digits hold every position SQLite gives in this life and compare as text. */
function positionOf(position: number): Position {
  return String(position).padStart(16, '0') as Position;
}

function numberOf(position: Position | null): number {
  return position === null ? 0 : Number(position);
}
