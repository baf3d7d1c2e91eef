/**
 * One event log for several processes, which guarantees only what `src/eventlog/port.ts` requires: calls take time, and
 * the line of each process to it can be cut, lose calls or answers, and repeat events.
 */
import {
  AppendOutcomeUnknown,
  LogClosed,
  LogUnavailable,
  RevisionConflict,
  SubscriptionDropped,
} from '../../src/eventlog/errors.js';
import type {
  Appended,
  EventLog,
  ExpectedRevision,
  Followed,
  NewEvent,
  Position,
  RecordedEvent,
  SubscribeOptions,
} from '../../src/eventlog/port.js';
import { categoryOf, checkAppend, isOfTypes } from '../../src/eventlog/port.js';
import type { Process, Scheduler } from './scheduler.js';

/** Most conflicts at one revision: more than clients and instances together can have. */
const MAX_CONFLICTS = 30;

/** The storage. It never loses an event. */
export class Storage {
  readonly events: RecordedEvent[] = [];
  readonly #streams = new Map<string, RecordedEvent[]>();
  readonly #appends = new Map<string, { readonly key: string; readonly appended: Appended }>();
  readonly #waiting = new Set<() => void>();
  readonly #onRecorded: (event: RecordedEvent) => void;
  readonly #onCircle: (what: string) => void;
  /** Appends to runs that are sent and not yet arrived. */
  onTheWay = 0;
  /** Conflicts by stream and expected revision. */
  readonly #conflicts = new Map<string, number>();

  /** @param onCircle called when the same append conflicts again and again */
  constructor(onRecorded: (event: RecordedEvent) => void, onCircle: (what: string) => void) {
    this.#onRecorded = onRecorded;
    this.#onCircle = onCircle;
  }

  stream(name: string): readonly RecordedEvent[] {
    return this.#streams.get(name) ?? [];
  }

  get head(): Position | null {
    return this.events.at(-1)?.position ?? null;
  }

  /** @throws {RevisionConflict} */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Appended {
    const [first] = events;
    if (first === undefined) throw new Error('An append of nothing');
    const key = `${stream} ${expected} ${events.map(({ id }) => id).join(' ')}`;
    const before = this.#appends.get(first.id);
    if (before?.key === key) return before.appended;
    const recorded = this.#streams.get(stream) ?? [];
    const actual = recorded.length === 0 ? 'none' : recorded.length - 1;
    if (actual !== expected) {
      const place = `${stream} after ${expected}`;
      const conflicts = (this.#conflicts.get(place) ?? 0) + 1;
      this.#conflicts.set(place, conflicts);
      if (conflicts > MAX_CONFLICTS) this.#onCircle(place);
      throw new RevisionConflict({ stream, expected, actual });
    }
    this.#streams.set(stream, recorded);
    for (const event of events)
      this.#record({ ...event, stream, revision: recorded.length, position: positionOf(this.events.length) }, recorded);
    const appended = { revision: recorded.length - 1, position: positionOf(this.events.length - 1) };
    this.#appends.set(first.id, { key, appended });
    this.wake();
    return appended;
  }

  #record(event: RecordedEvent, stream: RecordedEvent[]): void {
    stream.push(event);
    this.events.push(event);
    this.#onRecorded(event);
  }

  /** Wakes all subscriptions. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Calls back at every append until the function it returns is called. */
  wait(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => void this.#waiting.delete(wake);
  }
}

/** The fault of the next append to a run. */
export type AppendFault =
  /** Refused before it is sent. */
  | 'refused'
  /** Never arrives, and the outcome stays unknown. */
  | 'lost'
  /** Is recorded, but the answer is lost. */
  | 'unanswered'
  /** Arrives only after the caller has abandoned it and perhaps tried again. */
  | 'late'
  /** The process dies before it is sent, or after it is recorded. */
  | 'dies-before'
  | 'dies-after'
  /** The log acknowledges it but does not record it. No real log may do this. */
  | 'forgotten';

/** The line of an instance to the log, with its faults. */
export interface Line {
  /** Whether the log is embedded: an append in flight is lost when the process dies. */
  readonly isAlone: boolean;
  /** Nothing passes until this virtual time in milliseconds. */
  cutUntilMs: number;
  /** Calls take up to a second longer until this time. */
  slowUntilMs: number;
  /** Subscriptions deliver nothing until this time. */
  readonly deafUntilMs: number;
  /** How often its subscriptions were dropped. */
  readonly drops: number;
  /** Number of events that the next delivery repeats. */
  repeats: number;
  /** Appends to runs that wait for an answer. */
  appending: number;
  /** Called when the log shows the process that a stream has this many events. */
  onShown(stream: string, events: number): void;
  /** As `onShown`, for a read, which may be for a watcher. */
  onRead(stream: string, events: number): void;
  takeFault(): AppendFault | null;
  /** Ends the process, unless it has ended. */
  end(process: Process): void;
}

/** Time without an answer after which the outcome is unknown, in milliseconds. */
const DEADLINE_MS = 2_000;

export function openLine(
  storage: Storage,
  scheduler: Scheduler,
  { line, process, longestMs }: { readonly line: Line; readonly process: Process; readonly longestMs: number },
): EventLog {
  const { draws } = process;
  const pending = new Set<Promise<unknown>>();
  let isClosed = false;
  const isCut = (): boolean => line.cutUntilMs > scheduler.nowMs;
  const wayMs = (): number =>
    draws.latencyMs(longestMs) + (line.slowUntilMs > scheduler.nowMs ? 1_000 * draws.random() : 0);

  /** Rejects the questions without an answer; of an answered one this has no effect. */
  const unanswered = new Set<(error: Error) => void>();

  /** Reads the storage at the time of the call or at the time of the answer. */
  function ask<T>(question: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (isClosed) return reject(new LogClosed());
      unanswered.add(reject);
      const fail = (): void => reject(new LogUnavailable());
      if (isCut()) return void process.after(wayMs(), fail);
      const answer = draws.chance(0.5) ? { value: question() } : null;
      const waysMs = wayMs() + wayMs();
      if (waysMs >= DEADLINE_MS) return void process.after(DEADLINE_MS, fail);
      process.after(waysMs, () => {
        if (isCut()) process.after(DEADLINE_MS - waysMs, fail);
        else resolve(answer === null ? question() : answer.value);
      });
    });
  }

  function append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return new Promise((resolve, reject) => {
      if (isClosed) return reject(new LogClosed());
      const isOfRun = stream.startsWith('run-');
      const fault = isOfRun ? line.takeFault() : null;
      if (fault === 'dies-before') return line.end(process);
      if (isCut() || fault === 'refused') return void process.after(wayMs(), () => reject(new LogUnavailable()));
      const isUnsure = fault === 'lost' || fault === 'unanswered' || fault === 'late';
      const deadlineMs = isUnsure ? DEADLINE_MS * draws.random() : DEADLINE_MS;
      const giveUp = process.after(deadlineMs, () => reject(new AppendOutcomeUnknown({ stream })));
      const arrivesMs = fault === 'late' ? deadlineMs + 3_000 * draws.random() : wayMs();
      if (isOfRun) storage.onTheWay += 1;
      scheduler.after(arrivesMs, null, () => {
        if (isOfRun) storage.onTheWay -= 1;
        if (isCut() || fault === 'lost' || (line.isAlone && process.isDead)) return;
        const make = (): Appended =>
          fault === 'forgotten' ? { revision: 0, position: positionOf(0) } : storage.append(stream, events, expected);
        const answer = outcomeOf(make, { resolve, reject });
        if (fault === 'dies-after') return line.end(process);
        if (fault === 'unanswered' || isCut()) return;
        const { length } = storage.stream(stream);
        process.after(wayMs(), () => {
          giveUp();
          line.onShown(stream, length);
          answer();
        });
      });
    });
  }

  async function* subscribe(after: Position | null, { signal, ...wanted }: SubscribeOptions): AsyncGenerator<Followed> {
    const { drops } = line;
    let last = after;
    let next = after === null ? 0 : indexOf(after) + 1;
    let isCaughtUp = false;
    await ask(() => null);
    while (!signal.aborted) {
      if (line.drops !== drops || (isCut() && draws.chance(0.5))) throw new SubscriptionDropped({ last });
      if (isCut()) {
        await sleep(process, { delayMs: line.cutUntilMs - scheduler.nowMs, signal });
        continue;
      }
      if (line.deafUntilMs > scheduler.nowMs) {
        await sleep(process, { delayMs: line.deafUntilMs - scheduler.nowMs, signal });
        continue;
      }
      next = Math.max(0, next - line.repeats);
      line.repeats = 0;
      const batch = storage.events.slice(next, next + draws.whole(1, 12));
      for (const followed of followedOf(batch, wanted)) {
        yield followed;
        last = followed.position;
      }
      next += batch.length;
      if (next < storage.events.length) {
        await sleep(process, { delayMs: wayMs() / 4, signal });
        continue;
      }
      if (!isCaughtUp) yield { kind: 'caughtUp' };
      isCaughtUp = true;
      await news(storage, {
        process,
        signal,
        delayMs: wayMs(),
        isOld: () => next >= storage.events.length && line.drops === drops,
      });
    }
  }

  const keep = <T>(work: Promise<T>): Promise<T> => {
    pending.add(work);
    const done = (): void => void pending.delete(work);
    work.then(done, done);
    return work;
  };

  return {
    hasGaps: async () => false,
    async append(stream, events, expected) {
      checkAppend(stream, events, expected);
      if (!stream.startsWith('run-')) return await keep(append(stream, events, expected));
      line.appending += 1;
      try {
        return await keep(append(stream, events, expected));
      } finally {
        line.appending -= 1;
      }
    },
    async *readStream(stream, { from, direction = 'forwards', max = Number.POSITIVE_INFINITY } = {}) {
      const step = direction === 'forwards' ? 1 : -1;
      let at = from ?? (step > 0 ? 0 : null);
      for (let left = max; left > 0;) {
        const size = Math.min(left, draws.whole(4, 60));
        const page = await ask(() => pageOf(storage.stream(stream), { at, step, size }));
        const last = page.at(-1);
        if (last !== undefined) line.onRead(stream, last.revision + 1);
        yield* page;
        if (last === undefined || page.length < size) return;
        at = last.revision + step;
        left -= page.length;
      }
    },
    async *readAll(after, { categories, max = Number.POSITIVE_INFINITY } = {}) {
      const from = after === null ? 0 : indexOf(after) + 1;
      const wanted = (event: RecordedEvent): boolean => categories?.includes(categoryOf(event.stream)) ?? true;
      yield* await ask(() => storage.events.slice(from).filter(wanted).slice(0, max));
    },
    remove: () => Promise.reject(new Error('The simulation removes nothing')),
    subscribe,
    identity: () => ask(() => 'simulated'),
    head: () => ask(() => storage.head),
    ping: () => ask(() => undefined),
    async close() {
      isClosed = true;
      for (const reject of unanswered) reject(new LogClosed());
      await Promise.allSettled(pending);
      await new Promise<void>((resolve) => process.after(0, resolve));
    },
  };
}

/** The deliveries of a batch: unwanted events become checkpoints. */
function followedOf(
  batch: readonly RecordedEvent[],
  { categories, types }: Omit<SubscribeOptions, 'signal'>,
): readonly (Exclude<Followed, { kind: 'caughtUp' }> & { readonly position: Position })[] {
  return batch.map((event) => {
    const { stream, type, position } = event;
    const isOfCategory = categories?.includes(categoryOf(stream)) ?? true;
    return isOfCategory && isOfTypes(type, types)
      ? { kind: 'event', event, position }
      : { kind: 'checkpoint', position };
  });
}

function outcomeOf<T>(
  act: () => T,
  { resolve, reject }: { readonly resolve: (value: T) => void; readonly reject: (error: Error) => void },
): () => void {
  try {
    const value = act();
    return () => resolve(value);
  } catch (error) {
    return () => reject(error instanceof Error ? error : new Error(String(error)));
  }
}

/** Sleeps until the time or the signal. */
function sleep(
  process: Process,
  { delayMs, signal }: { readonly delayMs: number; readonly signal: AbortSignal },
): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = process.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}

/** Resolves after the storage has new events, or when the signal aborts. */
function news(
  storage: Storage,
  wait: {
    readonly process: Process;
    readonly signal: AbortSignal;
    readonly delayMs: number;
    readonly isOld: () => boolean;
  },
): Promise<void> {
  const { process, signal, delayMs, isOld } = wait;
  return new Promise((resolve) => {
    if (signal.aborted || !isOld()) return resolve();
    const end = (): void => {
      leave();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const leave = storage.wait(() => {
      leave();
      if (!process.isDead) process.after(delayMs, end);
    });
    signal.addEventListener('abort', end);
  });
}

function pageOf(
  events: readonly RecordedEvent[],
  { at, step, size }: { readonly at: number | null; readonly step: number; readonly size: number },
): readonly RecordedEvent[] {
  const first = Math.min(at ?? Number.POSITIVE_INFINITY, step > 0 ? Number.POSITIVE_INFINITY : events.length - 1);
  if (step > 0) return events.slice(first, first + size);
  return events.slice(Math.max(0, first - size + 1), first + 1).reverse();
}

function positionOf(index: number): Position {
  const text = String(index).padStart(9, '0');
  if (!isPosition(text)) throw new Error(`"${text}" is no position`);
  return text;
}

function isPosition(text: string): text is Position {
  return text.length === 9;
}

function indexOf(position: Position): number {
  return Number(position);
}
