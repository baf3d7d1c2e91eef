/** Verifies a document: the hash chain of its record and its stored view. */
import type { System } from '../system/system.js';
import { present } from '../system/element.js';
import { GENESIS_HASH } from '../eventsourcing/hash-chain.js';
import type { EventLog } from '../eventlog/port.js';
import { lastEvent, mayHaveLostEnd } from '../eventlog/port.js';
import { DocumentCorrupt } from './errors.js';
import type { DocumentRecord } from './events.js';
import { documentStatusOf, documentStream, isDecisive, readDocument, recordAfter } from './events.js';

export interface DocumentCheck {
  /** Number of valid events, from the first. */
  readonly events: number;
  /** Hash of the last valid event, or 64 zeros if there is none. */
  readonly headHash: string;
  readonly firstDifference: { readonly seq: number; readonly what: string } | null;
}

export interface VerifyDocumentDeps {
  readonly log: Pick<EventLog, 'readStream' | 'hasGaps'>;
  readonly sha256: System['sha256'];
  /** The stored view of a document, up to date with the log at the call, or null if there is none. */
  readonly stored: (documentId: string) => Promise<DocumentRecord | null>;
  /** Replaces a stored view that differs from the fold. */
  readonly replaceView: (seen: DocumentRecord | null, fold: DocumentRecord | null) => Promise<void>;
  /** Called for a corrupt document, which must not be served. */
  readonly onCorrupt: (error: DocumentCorrupt) => void;
  /** Called for a document whose record is valid since its last deletion or ingestion. */
  readonly onValid: (documentId: string) => void;
}

/**
 * Verifies the whole record of a document. Returns null for an unknown document. Corruption before a deletion or a
 * new ingestion is reported but does not block the document, so a corrupt document can be deleted and uploaded again.
 * A stored view that differs is reported and replaced.
 */
export async function verifyDocument(documentId: string, deps: VerifyDocumentDeps): Promise<DocumentCheck | null> {
  const { log, onCorrupt, onValid } = deps;
  const { stream, recorded } = await placeOf(documentId, log);
  // Read before the record, which may grow meanwhile, so that the record is never older than the view.
  const stored = await deps.stored(documentId);
  const record = await wholeRecord(documentId, deps);
  const { events, headHash, decisive: turns } = record;
  const corruption = record.corruption ?? (await cutOff(documentId, events, { recorded, stored, log }));
  const isSound = corruption === null && isView(stored, turns, recorded);
  // An erasure meanwhile, or an upload after it, explains a difference.
  if (!isSound && (await placeOf(documentId, log)).stream !== stream) return await verifyDocument(documentId, deps);
  if (corruption === null && events === 0) return null;
  if (corruption !== null) {
    if (record.corruption !== null && (await isValidSince(documentId, deps))) onValid(documentId);
    else onCorrupt(corruption);
    return { events, headHash, firstDifference: { seq: corruption.data.seq, what: corruption.data.reason } };
  }
  onValid(documentId);
  const firstDifference = isSound ? null : await replaced(stored, turns, deps);
  return { events, headHash, firstDifference };
}

/** The stream that holds a document now, null if none does, and the revision of its last event. */
async function placeOf(documentId: string, log: VerifyDocumentDeps['log']) {
  const last = await lastEvent(log, documentStream(documentId));
  return { stream: last?.stream ?? null, recorded: last?.revision ?? -1 };
}

/** Replaces a stored view that differs from the fold and returns the difference. */
async function replaced(
  stored: DocumentRecord | null,
  turns: readonly Decisive[],
  { replaceView }: VerifyDocumentDeps,
): Promise<DocumentCheck['firstDifference']> {
  const last = turns.at(-1);
  await replaceView(stored, last?.record ?? null);
  const seq = present(stored ?? last, 'view or event').seq;
  return { seq, what: 'the stored view of the document is not the fold of its events' };
}

/** An ingestion or a deletion, with the entry of the document after it. */
interface Decisive {
  readonly seq: number;
  readonly record: DocumentRecord | null;
}

interface WholeRecord extends Pick<DocumentCheck, 'events' | 'headHash'> {
  readonly decisive: readonly Decisive[];
  /** The error at which reading ended, or null. */
  readonly corruption: DocumentCorrupt | null;
}

async function wholeRecord(documentId: string, { log, sha256 }: VerifyDocumentDeps): Promise<WholeRecord> {
  const decisive: Decisive[] = [];
  let [events, headHash] = [0, GENESIS_HASH];
  try {
    for await (const event of readDocument(log, documentId, { sha256 })) {
      events += 1;
      headHash = event.hash;
      if (isDecisive(event)) decisive.push({ seq: event.seq, record: recordAfter(documentId, event) });
    }
    return { events, headHash, decisive, corruption: null };
  } catch (error) {
    if (!(error instanceof DocumentCorrupt)) throw error;
    return { events, headHash, decisive, corruption: error };
  }
}

/**
 * Detects a record that has lost its end. If the log may have lost events, a stored view that is ahead of the record
 * proves it; otherwise the view is wrong.
 */
async function cutOff(
  documentId: string,
  events: number,
  {
    recorded,
    stored,
    log,
  }: { readonly recorded: number; readonly stored: DocumentRecord | null } & Pick<VerifyDocumentDeps, 'log'>,
): Promise<DocumentCorrupt | null> {
  const isWitness = await mayHaveLostEnd(log, events - 1);
  const known = Math.max(recorded, isWitness ? (stored?.seq ?? -1) : -1);
  if (known < events) return null;
  const reason = `the record ends before it, but once had event ${known}`;
  return new DocumentCorrupt({ documentId, seq: events, reason });
}

/** Whether the events since the last deletion or ingestion are valid. */
async function isValidSince(documentId: string, { log, sha256 }: VerifyDocumentDeps): Promise<boolean> {
  try {
    const { head, since } = await documentStatusOf(log, documentId);
    let seq = -1;
    for await (const event of readDocument(log, documentId, { sha256, from: since })) seq = event.seq;
    return head !== null && seq >= head.revision;
  } catch (error) {
    if (error instanceof DocumentCorrupt) return false;
    throw error;
  }
}

/** Whether a view matches the record at a revision or later. */
function isView(stored: DocumentRecord | null, decisive: readonly Decisive[], recorded: number): boolean {
  const before = decisive.filter(({ seq }) => seq <= recorded).at(-1);
  const possible = [
    before?.record ?? null,
    ...decisive.filter(({ seq }) => seq > recorded).map(({ record }) => record),
  ];
  return possible.some((record) => JSON.stringify(record) === JSON.stringify(stored));
}

/** Receives each document once, when it is found corrupt. */
export interface CorruptDocumentObserver {
  onDocumentCorrupt(error: DocumentCorrupt): void;
}

/**
 * The documents whose record is corrupt: they are excluded from search and not shown by id. Not stored, because every
 * start verifies all documents. One small entry per corrupt document.
 */
export class CorruptDocuments {
  readonly #found = new Map<string, DocumentCorrupt>();
  readonly #observers: CorruptDocumentObserver[] = [];

  subscribe(...observers: readonly CorruptDocumentObserver[]): void {
    this.#observers.push(...observers);
  }

  has(documentId: string): boolean {
    return this.#found.has(documentId);
  }

  /** Marks a document as corrupt. */
  found(error: DocumentCorrupt): void {
    const { documentId } = error.data;
    if (this.#found.has(documentId)) return;
    this.#found.set(documentId, error);
    for (const observer of this.#observers) observer.onDocumentCorrupt(error);
  }

  /** Runs work on documents and marks the one that it finds corrupt. */
  async noting<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DocumentCorrupt) this.found(error);
      throw error;
    }
  }

  /** Unmarks a document that is valid again, because it was deleted or ingested again. */
  forget(documentId: string): void {
    this.#found.delete(documentId);
  }

  /** @throws {DocumentCorrupt} for a document that was found corrupt */
  assertNotCorrupt(documentId: string): void {
    const error = this.#found.get(documentId);
    if (error !== undefined) throw error;
  }
}
