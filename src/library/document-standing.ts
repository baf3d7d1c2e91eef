/** Where a document stands, read from the end of its stream. */
import type { EventLog, RecordedEvent } from '../log/port.js';
import { documentEventOf, documentStream } from './document-events.js';

export interface Standing {
  /** Its last event; null: it has none. */
  readonly head: RecordedEvent | null;
  /** The last one that made it findable or took it away; null: it was received since, or never. */
  readonly decisive: RecordedEvent | null;
  /** Seq of the first event that counts: what was before it was deleted, or begun anew. */
  readonly since: number;
}

type Reading = Pick<EventLog, 'readStream'>;

/** @throws {DocumentDamaged} for an event on the way that is none of a document */
export async function documentStanding(log: Reading, documentId: string): Promise<Standing> {
  const head = await eventAt(log, documentId);
  for (let event = head; event !== null; event = await eventAt(log, documentId, event.revision - 1)) {
    const { type, data, seq } = documentEventOf(event);
    if (type === 'DocumentReceived') return { head, decisive: null, since: seq };
    if (type === 'DocumentIngested') return { head, decisive: event, since: data.since };
    if (type === 'DocumentDeleted') return { head, decisive: event, since: seq };
  }
  return { head, decisive: null, since: 0 };
}

/** Its last event; null: it has none. */
export function lastEventOf(log: Reading, documentId: string): Promise<RecordedEvent | null> {
  return eventAt(log, documentId);
}

/** One event at a time: those with vectors are large. */
async function eventAt(log: Reading, documentId: string, revision?: number): Promise<RecordedEvent | null> {
  const range = { direction: 'backwards', max: 1, ...(revision !== undefined && { from: revision }) } as const;
  for await (const event of log.readStream(documentStream(documentId), range)) return event;
  return null;
}
