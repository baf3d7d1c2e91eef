import type { LedgerOfService } from '../../src/http/route.js';
import { MerkleTree } from '../../src/ledger/tree.js';

/** An empty ledger, for tests of an edge without the service. */
export const NO_LEDGER: LedgerOfService = {
  tree: new MerkleTree(async () => []),
  entries: async () => [],
  checkpoints: { newest: null, note: null, covered: 0, witnesses: [], fault: null },
  intervalMs: 1_000,
  origin: 'example.com/council',
  vkey: null,
  leafOf: async () => null,
};
