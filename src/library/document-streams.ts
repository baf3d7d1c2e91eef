/** Documents on the log: events appended to their streams, and read back. */
import type { Ambient } from '../ambient.js';
import { appendSurely } from '../log/append-surely.js';
import { GENESIS_HASH, sealEvents } from '../log/chain.js';
import type { EventLog, Position } from '../log/port.js';
import type { UnderWay } from '../under-way.js';
import type { DocumentEvent, DocumentFact } from './document-events.js';
import { documentStream, isDocumentEvent, readDocument } from './document-events.js';
import type { Standing } from './document-standing.js';
import { documentStanding } from './document-standing.js';
import type { DocumentState } from './document-state.js';
import { evolveDocument } from './document-state.js';

export interface StreamsOptions {
  readonly log: EventLog;
  readonly ambient: Ambient;
  readonly instanceId: string;
  /** How long an append is tried, in milliseconds. */
  readonly appendDeadlineMs: number;
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
  const standing = (documentId: string): Promise<Standing> => documentStanding(log, documentId);
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
