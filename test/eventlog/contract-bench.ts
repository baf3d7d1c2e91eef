/** Shared by the contract tests of the event log: the log under test, unique names, and collecting functions. */
import { randomUUID } from 'node:crypto';
import type { EventLog, Followed, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';

/** A log opened for a test; `prefix` begins the names of every stream the test writes and holds no dash. */
export interface OpenedLog {
  readonly log: EventLog;
  readonly prefix: string;
  close(): Promise<void>;
}

/** Opens a log. It may hold other events, and other processes may write to it: the suite uses only its own names. */
export type OpenLog = () => Promise<OpenedLog>;

/** Returns the log of the current test. */
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

/** All items of an iterable. */
export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** The items until a condition holds. Leaving the loop releases the source. */
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

/** The events among the deliveries of a subscription. */
export function eventsIn(followed: readonly Followed[]): readonly RecordedEvent[] {
  return followed.flatMap((each) => (each.kind === 'event' ? [each.event] : []));
}

/** The ids of events, in their order. */
export function idsOf(events: readonly { readonly id: string }[]): readonly string[] {
  return events.map(({ id }) => id);
}
