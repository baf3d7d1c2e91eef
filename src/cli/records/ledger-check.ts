/** Compares the ledger in a folder with the runs that it names, and with checkpoints. */
import type { RecordedEvent } from '../../eventlog/port.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { LedgerCorrupt } from '../../ledger/errors.js';
import type { Leaf } from '../../ledger/events.js';
import { CHECKPOINTS_STREAM, LEDGER_STREAM, checkpointEventOf, entryOf, leafOf } from '../../ledger/events.js';
import type { TreeHead } from '../../ledger/note.js';
import { checkpointIn } from '../../ledger/note.js';
import { MerkleTree, leafHash } from '../../ledger/tree.js';
import { runStream } from '../../run/events.js';
import type { StreamChains } from './stream-chains.js';

/** Where the ledger, or what it covers, first differs. */
export interface LedgerDifference {
  /** The smallest number of leaves with the difference. */
  readonly size: number;
  readonly what: string;
}

/** A leaf whose run has another record, or none although no later leaf erases the run. */
interface Misfit extends LedgerDifference {
  readonly runId: string;
  readonly isMissing: boolean;
}

/**
 * Reads the ledger of a log whose other streams have been read.
 *
 * @param saved a checkpoint that is kept elsewhere, or null to compare with the recorded ones
 * @returns the differences, the one at the smallest size first
 */
export async function ledgerDifferences(
  log: ReadOnlyLog,
  chains: StreamChains,
  saved: TreeHead | null,
): Promise<readonly LedgerDifference[]> {
  const checkpoints = saved === null ? await recordedCheckpoints(log) : new Map([[saved.size, saved]]);
  const found: LedgerDifference[] = [];
  const misfits: Misfit[] = [];
  const erased = new Set<string>();
  const tree = new MerkleTree();
  const take = (event: RecordedEvent): void => {
    tree.add(leafHash(entryOf(event)));
    const { size } = tree;
    const leaf = leafOf(event);
    if (leaf.kind === 'run') misfits.push(...misfitOf(leaf, chains).map((misfit) => ({ ...misfit, size })));
    else if (leaf.what === 'run') erased.add(leaf.id);
    const root = checkpoints.get(size)?.root.equals(tree.root());
    if (root === false) found.push({ size, what: 'the root of the ledger is not the root in the checkpoint' });
  };
  try {
    for await (const event of log.readStream(LEDGER_STREAM)) take(event);
  } catch (error) {
    if (!(error instanceof LedgerCorrupt)) throw error;
    found.push({ size: tree.size + 1, what: error.message });
  }
  const largest = [...checkpoints.keys()].reduce((one, other) => Math.max(one, other), 0);
  if (tree.size < largest)
    found.push({ size: tree.size + 1, what: `the ledger ends before it, and the checkpoint covers ${largest} leaves` });
  return [...found, ...misfits.filter(({ runId, isMissing }) => !isMissing || !erased.has(runId))]
    .filter(({ size }) => saved === null || size <= saved.size)
    .sort((one, other) => one.size - other.size);
}

/** Why the record of a run does not fit its leaf; empty if it does. */
function misfitOf(
  { runId, headHash, events }: Extract<Leaf, { kind: 'run' }>,
  chains: StreamChains,
): readonly Omit<Misfit, 'size'>[] {
  const stream = runStream(runId);
  const end = chains.endOf(stream);
  if (end === null)
    return [{ runId, isMissing: true, what: `the record of run ${runId} is missing, and no leaf erases it` }];
  const fault = chains.faults.get(stream);
  if (fault !== undefined)
    return [{ runId, isMissing: false, what: `event ${fault.revision} of run ${runId}: ${fault.reason}` }];
  if (end.hash === headHash && end.revision === events - 1) return [];
  return [{ runId, isMissing: false, what: `the record of run ${runId} is not the one in the ledger` }];
}

/** The recorded checkpoints of the newest origin, by size. */
async function recordedCheckpoints(log: ReadOnlyLog): Promise<ReadonlyMap<number, TreeHead>> {
  const found = new Map<number, TreeHead>();
  let origin: string | null = null;
  for await (const recorded of log.readStream(CHECKPOINTS_STREAM)) {
    const { type, data } = checkpointEventOf(recorded);
    if (type !== 'CheckpointSigned') continue;
    const checkpoint = checkpointIn(data.note);
    if (checkpoint.origin !== origin) found.clear();
    origin = checkpoint.origin;
    found.set(checkpoint.size, checkpoint);
  }
  return found;
}
