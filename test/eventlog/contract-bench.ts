/** What the event log's contract tests share: a log under test, unique names, ways to collect. */
import { randomUUID } from 'node:crypto';
import type { EventLog, Followed, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';

/** A log opened for a test; `prefix` begins the names of every stream the test writes and holds no dash. */
export interface OpenedLog {
  readonly log: EventLog;
  readonly prefix: string;
  close(): Promise<void>;
}

/** Opens a log, which may hold anything and be written by others; the suite keeps to names of its own. */
export type OpenLog = () => Promise<OpenedLog>;

/** Gives the log of the test under way. */
export type CurrentLog = () => OpenedLog;

/** A category no other test uses. */
export function freshCategory({ prefix }: OpenedLog): string {
  return `${prefix}c${randomUUID().replaceAll('-', '')}`;
}

/** A stream no other test uses. */
export function freshStream(opened: OpenedLog): string {
  return `${freshCategory(opened)}-${randomUUID()}`;
}

/** An event with a fresh id. */
export function newEvent(data: object = { n: 1 }, type = 'Counted'): NewEvent {
  return { id: randomUUID(), type, data: JSON.stringify(data), metadata: { schemaVersion: '1', note: 'ünï' } };
}

/** Events numbered from 0 in their data. */
export function numbered(count: number): readonly NewEvent[] {
  return Array.from({ length: count }, (_, n) => newEvent({ n }));
}

/** All that an iterable gives. */
export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** What comes until a condition holds; leaving the loop there releases the source. */
export async function until<T>(
  items: AsyncIterable<T>,
  isEnough: (collected: readonly T[]) => boolean,
): Promise<readonly T[]> {
  const collected: T[] = [];
  for await (const item of items) {
    collected.push(item);
    if (isEnough(collected)) return collected;
  }
  return collected;
}

/** The events among what a subscription gave. */
export function eventsIn(followed: readonly Followed[]): readonly RecordedEvent[] {
  return followed.flatMap((each) => (each.kind === 'event' ? [each.event] : []));
}

/** The ids of events, in their order. */
export function idsOf(events: readonly { readonly id: string }[]): readonly string[] {
  return events.map(({ id }) => id);
}
