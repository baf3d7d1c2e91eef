/** The events of the ledger and of its checkpoints, as they are recorded. */
import { checkpointEvents, ledgerEvents } from '../generated/recorded-events.js';
import type { CheckpointFacts, LedgerFacts } from '../generated/schemas.js';
import type { EventLog, NewEvent, RecordedEvent } from '../eventlog/port.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { FactOf } from '../eventsourcing/event-data.js';
import { eventReader } from '../eventsourcing/event-data.js';
import { SCHEMA_VERSION } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { reasonOf } from '../system/untrusted.js';
import { LedgerCorrupt } from './errors.js';
import type { TreeHead } from './note.js';
import { MerkleTree, TILE_WIDTH, leafHash } from './tree.js';

/** The stream of the leaves. The number of a leaf is the revision of its event. */
export const LEDGER_STREAM = 'ledger';
/** The stream of the signed checkpoints and of their cosignatures. */
export const CHECKPOINTS_STREAM = 'checkpoints';

export type CheckpointFact = FactOf<CheckpointFacts>;
export type Leaf = LedgerFacts['LeafAdded'];
/** The end of a run. */
export type RunLeaf = Extract<Leaf, { kind: 'run' }>;
/** An erasure of a run or of a document. */
export type ErasureLeaf = Extract<Leaf, { kind: 'erasure' }>;

const leafEventOf = eventReader<LedgerFacts>(ledgerEvents, corruption);
/** The event in a recorded event of the checkpoints. @throws {LedgerCorrupt} */
export const checkpointEventOf = eventReader<CheckpointFacts>(checkpointEvents, corruption);

/** The leaf in a recorded event of the ledger. @throws {LedgerCorrupt} it has another type or other data */
export function leafOf(recorded: RecordedEvent): Leaf {
  return leafEventOf(recorded).data;
}

/** When, by whom and why a run or a document was erased. */
export interface Erased {
  /** Number of the leaf of the erasure. */
  readonly index: number;
  /** ISO 8601. */
  readonly at: string;
  readonly by: string | null;
  readonly reason: string | null;
}

/** The newest erasure of a run or a document, or null if there is none. Reads the ledger from its end. */
export async function erasureIn(
  log: Pick<EventLog, 'readStream'>,
  what: ErasureLeaf['what'],
  id: string,
): Promise<Erased | null> {
  for await (const event of log.readStream(LEDGER_STREAM, { direction: 'backwards' })) {
    const leaf = leafOf(event);
    if (leaf.kind === 'erasure' && leaf.what === what && leaf.id === id)
      return { index: event.revision, at: leaf.erasedAt, by: leaf.actor, reason: leaf.reason };
  }
  return null;
}

/**
 * The bytes of a leaf that the tree covers: the RFC 8785 form of the event's data.
 *
 * @throws {LedgerCorrupt} its data is no JSON object
 */
export function entryOf(recorded: RecordedEvent): Buffer {
  try {
    return Buffer.from(canonical(JSON.parse(recorded.data)));
  } catch (error) {
    throw corruption(recorded.stream, recorded.revision, error);
  }
}

/** The entries of a tile, by its number. @param width how many, 1 to 256 */
export async function entriesIn(
  log: Pick<EventLog, 'readStream'>,
  tile: number,
  width = TILE_WIDTH,
): Promise<readonly Buffer[]> {
  const entries: Buffer[] = [];
  const range = { from: tile * TILE_WIDTH, max: width };
  for await (const event of log.readStream(LEDGER_STREAM, range)) entries.push(entryOf(event));
  return entries;
}

/** The tree of the ledger of a log, still without leaves. */
export function treeIn(log: Pick<EventLog, 'readStream'>): MerkleTree {
  return new MerkleTree(async (tile) => (await entriesIn(log, tile)).map(leafHash));
}

/** What a ledger lacks of a checkpoint, and the first size with that difference, or null if it lacks nothing. */
export async function lackOf(
  tree: MerkleTree,
  { size, root }: Pick<TreeHead, 'size' | 'root'>,
): Promise<{ readonly size: number; readonly what: string } | null> {
  if (tree.size < size)
    return { size: tree.size + 1, what: `the ledger has fewer leaves than the checkpoint covers (${size})` };
  if ((await tree.rootAt(size)).equals(root)) return null;
  return { size, what: `the ledger has another root at size ${size} than the checkpoint (${root.toString('base64')})` };
}

/**
 * The event of a leaf, to be appended. It has no hash of a chain: the tree covers it, and a checkpoint proves more than a
 * chain. Without the hash and the ids of other events, a run costs less than 400 bytes on the disk.
 *
 * @param kept what the totals count of an erased run, which its leaf does not hold, as JSON text
 */
export function leafEvent(leaf: Leaf, { uuid, now }: Pick<System, 'uuid' | 'now'>, kept?: string): NewEvent {
  const metadata = { occurredAt: now(), schemaVersion: String(SCHEMA_VERSION), ...(kept !== undefined && { kept }) };
  return { id: uuid(), type: 'LeafAdded', data: canonical(leaf), metadata };
}

function corruption(stream: string, seq: number, cause: unknown): LedgerCorrupt {
  return new LedgerCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
}
