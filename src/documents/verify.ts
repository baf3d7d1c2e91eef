/** Whether a document bears out as this service has it: the hash chain of its record, and the view of it that is stored. */
import type { System } from '../system/system.js';
import { GENESIS_HASH } from '../eventsourcing/hash-chain.js';
import type { EventLog } from '../eventlog/port.js';
import { DocumentCorrupt } from './errors.js';
import { readDocument } from './events.js';
import type { DocumentRecord } from './events.js';
import { isDecisive, recordAfter } from './events.js';
import { documentStatusOf, lastEventOf } from './streams.js';

export interface DocumentCheck {
  /** Events that bear out, from the first. */
  readonly events: number;
  /** Hash of the last of them; 64 zeros when there is none. */
  readonly headHash: string;
  readonly firstDifference: { readonly seq: number; readonly what: string } | null;
}

export interface VerifyDocumentDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly sha256: System['sha256'];
  /** The stored view of a document, with everything in it that is recorded by the call; null when there is none. */
  readonly stored: (documentId: string) => Promise<DocumentRecord | null>;
  /** Puts the fold in the place of a stored view that differs from it. */
  readonly replaceView: (seen: DocumentRecord | null, fold: DocumentRecord | null) => Promise<void>;
  /** Told of a document that must not be shown as true. */
  readonly onCorrupt: (error: DocumentCorrupt) => void;
  /** Told of one that may be: all that counts of its record bears out, or all of it. */
  readonly onValid: (documentId: string) => void;
}

/**
 * Reads and checks the whole record of a document; null when nothing is known of it. What was before it was deleted or
 * begun anew is told where it does not bear out, and costs nothing else: a damaged document that was deleted can be
 * taken in again. A stored view that differs is told and replaced at once.
 */
export async function verifyDocument(documentId: string, deps: VerifyDocumentDeps): Promise<DocumentCheck | null> {
  const { log, onCorrupt: onDamaged, onValid: onSound } = deps;
  const recorded = (await lastEventOf(log, documentId))?.revision ?? -1;
  // Before the record is read, which may go on meanwhile: so the record always comes past what the view was folded to.
  const stored = await deps.stored(documentId);
  const record = await wholeRecord(documentId, deps);
  const { events, headHash, turns } = record;
  const known = Math.max(recorded, stored?.seq ?? -1);
  const damage = record.damage ?? cutOff(documentId, events, known);
  if (damage === null && events === 0) return null;
  if (damage !== null) {
    if (record.damage !== null && (await bearsOutSince(documentId, deps))) onSound(documentId);
    else onDamaged(damage);
    return { events, headHash, firstDifference: { seq: damage.data.seq, what: damage.data.reason } };
  }
  onSound(documentId);
  const firstDifference = isView(stored, turns, recorded) ? null : await replaced(stored, turns, deps);
  return { events, headHash, firstDifference };
}

/** Puts the fold in the place of a stored view that is not the fold, and says so. */
async function replaced(
  stored: DocumentRecord | null,
  turns: readonly Turn[],
  { replaceView }: VerifyDocumentDeps,
): Promise<DocumentCheck['firstDifference']> {
  const last = turns.at(-1);
  await replaceView(stored, last?.record ?? null);
  // A view that nothing recorded leads to differs from the first event on.
  const seq = stored?.seq ?? last?.seq ?? 0;
  return { seq, what: 'the stored view of the document is not the fold of its events' };
}

/** An event that made the document findable or took it away, with what is listed of it from then on. */
interface Turn {
  readonly seq: number;
  readonly record: DocumentRecord | null;
}

interface WholeRecord extends Pick<DocumentCheck, 'events' | 'headHash'> {
  readonly turns: readonly Turn[];
  /** What its reading ended with. */
  readonly damage: DocumentCorrupt | null;
}

async function wholeRecord(documentId: string, { log, sha256 }: VerifyDocumentDeps): Promise<WholeRecord> {
  const turns: Turn[] = [];
  let [events, headHash] = [0, GENESIS_HASH];
  try {
    for await (const event of readDocument(log, documentId, { sha256 })) {
      events += 1;
      headHash = event.hash;
      if (isDecisive(event)) turns.push({ seq: event.seq, record: recordAfter(documentId, event) });
    }
    return { events, headHash, turns, damage: null };
  } catch (error) {
    if (!(error instanceof DocumentCorrupt)) throw error;
    return { events, headHash, turns, damage: error };
  }
}

/** A record that ends before an event that it once had. */
function cutOff(documentId: string, events: number, known: number): DocumentCorrupt | null {
  if (known < events) return null;
  const reason = `the record ends before it, and has gone on to event ${known} once`;
  return new DocumentCorrupt({ documentId, seq: events, reason });
}

/** Whether all of its record bears out that the document goes by. */
async function bearsOutSince(documentId: string, { log, sha256 }: VerifyDocumentDeps): Promise<boolean> {
  try {
    const { head, since } = await documentStatusOf(log, documentId);
    let seq = -1;
    for await (const event of readDocument(log, documentId, { sha256, from: since })) seq = event.seq;
    return seq >= (head?.revision ?? 0);
  } catch (error) {
    if (error instanceof DocumentCorrupt) return false;
    throw error;
  }
}

/** Whether a view is what the record made of the document when its head stood at a revision, or later. */
function isView(stored: DocumentRecord | null, turns: readonly Turn[], recorded: number): boolean {
  const before = turns.filter(({ seq }) => seq <= recorded).at(-1);
  const possible = [before?.record ?? null, ...turns.filter(({ seq }) => seq > recorded).map(({ record }) => record)];
  return possible.some((record) => JSON.stringify(record) === JSON.stringify(stored));
}
