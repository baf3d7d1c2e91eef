/** What the ledger says is erased, for readers of the log alone. */
import type { EventLog } from '../eventlog/port.js';
import type { ErasureLeaf } from './events.js';
import { LEDGER_STREAM, leafOf } from './events.js';

/** The newest erasure of a run or a document, or null if there is none. Reads the ledger from its end. */
export async function erasureIn(
  log: Pick<EventLog, 'readStream'>,
  { what, id }: Pick<ErasureLeaf, 'what' | 'id'>,
): Promise<(ErasureLeaf & { readonly index: number }) | null> {
  for await (const event of log.readStream(LEDGER_STREAM, { direction: 'backwards' })) {
    const leaf = leafOf(event);
    if (leaf.kind === 'erasure' && leaf.what === what && leaf.id === id) return { ...leaf, index: event.revision };
  }
  return null;
}
