/** Documents on the log: events appended to their streams, and read back. */
import type { Ambient } from '../ambient.js';
import { appendSurely } from '../log/append-surely.js';
import { GENESIS_HASH, sealEvents } from '../log/chain.js';
import type { EventLog, Position, RecordedEvent } from '../log/port.js';
import type { UnderWay } from '../under-way.js';
import type { DocumentEvent, DocumentFact } from './document-events.js';
import { documentEventOf, documentStream, isDocumentEvent, readDocument } from './document-events.js';
import type { DocumentState } from './document-state.js';
import { evolveDocument } from './document-state.js';

export interface StreamsOptions {
  readonly log: EventLog;
  readonly ambient: Ambient;
  readonly instanceId: string;
  /** How long an append is tried, in milliseconds. */
  readonly appendDeadlineMs: number;
}

/** Where a document stands. */
export interface Standing {
  /** Its last event; null: it has none. */
  readonly head: RecordedEvent | null;
  /** The last one that made it findable or took it away; null: it was received since, or never. */
  readonly decisive: RecordedEvent | null;
  /** Seq of the first event that counts: what was before it was deleted, or begun anew. */
  readonly since: number;
}

export interface DocumentStreams {
  /**
   * Appends after an event, null for the first.
   *
   * @throws {RevisionConflict} another event stands there
   * @throws {LogUnavailable | AppendOutcomeUnknown} the log does not answer in time
   */
  append(
    documentId: string,
    facts: readonly DocumentFact[],
    head: DocumentState['head'] | null,
  ): Promise<{ readonly events: readonly DocumentEvent[]; readonly position: Position }>;
  /** The document after all of its events that count and follow those it was folded from. @throws {DocumentDamaged} */
  fold(documentId: string, folded: DocumentState | null): Promise<DocumentState | null>;
  /** @throws {DocumentDamaged} */
  standing(documentId: string): Promise<Standing>;
}

/** @param underWay whose end ends the waits of appends */
export function documentStreams(
  { log, ambient, instanceId, appendDeadlineMs }: StreamsOptions,
  underWay: UnderWay,
): DocumentStreams {
  /** One event at a time: those with vectors are large. */
  const eventAt = async (documentId: string, revision?: number): Promise<RecordedEvent | null> => {
    const range = { direction: 'backwards', max: 1, ...(revision !== undefined && { from: revision }) } as const;
    for await (const event of log.readStream(documentStream(documentId), range)) return event;
    return null;
  };
  const standing = async (documentId: string): Promise<Standing> => {
    const head = await eventAt(documentId);
    for (let event = head; event !== null; event = await eventAt(documentId, event.revision - 1)) {
      const { type, data, seq } = documentEventOf(event);
      if (type === 'DocumentReceived') return { head, decisive: null, since: seq };
      if (type === 'DocumentIngested') return { head, decisive: event, since: data.since };
      if (type === 'DocumentDeleted') return { head, decisive: event, since: seq };
    }
    return { head, decisive: null, since: 0 };
  };
  return {
    async append(documentId, facts, head) {
      const { events, exported } = sealEvents(head ?? { seq: -1, hash: GENESIS_HASH }, facts, {
        at: ambient.now(),
        nextId: ambient.uuid,
        sha256: ambient.sha256,
        instanceId,
        correlationId: documentId,
        causationId: head?.id ?? documentId,
      });
      const append = { stream: documentStream(documentId), events, expected: head?.seq ?? ('none' as const) };
      const late = new AbortController();
      const cancel = ambient.after(appendDeadlineMs, () => late.abort());
      try {
        const { position } = await underWay.untilEnd((signal) =>
          appendSurely(log, append, { ambient, signal: AbortSignal.any([signal, late.signal]) }),
        );
        return { events: exported.filter(isDocumentEvent), position };
      } finally {
        cancel();
      }
    },
    async fold(documentId, folded) {
      const from = folded === null ? (await standing(documentId)).since : folded.head.seq + 1;
      let state = folded;
      for await (const event of readDocument(log, documentId, { sha256: ambient.sha256, from })) {
        state = evolveDocument(state, event);
      }
      return state;
    },
    standing,
  };
}
