/** Compares the ledger of a log with the streams that it names, and with a checkpoint. */
import type { EventLog } from '../../eventlog/port.js';
import { LedgerCorrupt } from '../../ledger/errors.js';
import type { RunLeaf } from '../../ledger/events.js';
import {
  CHECKPOINTS_STREAM,
  LEDGER_STREAM,
  checkpointEventOf,
  entryOf,
  lackOf,
  leafOf,
  treeIn,
} from '../../ledger/events.js';
import type { Checkpoint } from '../../ledger/note.js';
import { checkpointIn } from '../../ledger/note.js';
import { leafHash } from '../../ledger/tree.js';
import { runStream } from '../../run/events.js';
import type { StreamChains } from './stream-chains.js';

/** Where the ledger, or what it covers, first differs. */
export interface LedgerDifference {
  /** The smallest number of leaves with the difference. */
  readonly size: number;
  readonly what: string;
}

/**
 * Reads the ledger of a log whose other streams have been read. Without a saved checkpoint it omits the faults of `chains`.
 *
 * @param saved a checkpoint that is kept elsewhere, or null to compare with the newest recorded one
 * @returns the differences, the one at the smallest size first
 */
export async function ledgerDifferences(
  log: Pick<EventLog, 'readStream'>,
  chains: StreamChains,
  saved: Checkpoint | null,
): Promise<readonly LedgerDifference[]> {
  const found: LedgerDifference[] = [];
  const tree = treeIn(log);
  try {
    for await (const event of log.readStream(LEDGER_STREAM)) {
      tree.add(leafHash(entryOf(event)));
      const leaf = leafOf(event);
      const what = leaf.kind === 'run' ? misfitOf(leaf, chains, saved === null) : null;
      if (what !== null) found.push({ size: tree.size, what });
    }
    const checkpoint = saved ?? (chains.faults.has(CHECKPOINTS_STREAM) ? null : await newestCheckpoint(log));
    const lack = checkpoint && (await lackOf(tree, checkpoint));
    if (lack !== null) found.push(lack);
  } catch (error) {
    if (!(error instanceof LedgerCorrupt)) throw error;
    found.push({ size: tree.size + 1, what: error.message });
  }
  return found.filter(({ size }) => saved === null || size <= saved.size).sort((a, b) => a.size - b.size);
}

/**
 * Why the record of a run does not fit its leaf, or null if it does.
 *
 * @param isSaid whether the caller reports broken chains itself: they are then no misfit
 */
function misfitOf({ runId, headHash, events }: RunLeaf, chains: StreamChains, isSaid: boolean): string | null {
  const stream = runStream(runId);
  const end = chains.endOf(stream);
  if (end === null)
    return chains.erased.has(stream) ? null : `the record of run ${runId} is missing, and no leaf erases it`;
  const fault = chains.faults.get(stream);
  if (fault !== undefined) return isSaid ? null : `event ${fault.revision} of run ${runId}: ${fault.reason}`;
  const isSame = end.hash === headHash && end.revision === events - 1;
  return isSame ? null : `the record of run ${runId} is not the one in the ledger`;
}

/** The newest recorded checkpoint, or null if there is none. @throws {LedgerCorrupt} */
async function newestCheckpoint(log: Pick<EventLog, 'readStream'>): Promise<Checkpoint | null> {
  for await (const recorded of log.readStream(CHECKPOINTS_STREAM, { direction: 'backwards' })) {
    const { type, data } = checkpointEventOf(recorded);
    if (type === 'CheckpointSigned') return checkpointIn(data.note);
  }
  return null;
}
