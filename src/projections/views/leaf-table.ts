/** The leaves of the ledger in the stored views: which leaf a run has, and what is erased. In the views worker. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { ErasureLeaf, Leaf } from '../../ledger/events.js';
import { fieldOf } from '../../system/untrusted.js';
import { textOf } from './stored-row.js';

/** A leaf with its number. */
export interface LeafRow {
  /** The number as text. */
  readonly id: string;
  readonly leaf: Leaf;
  /** What the totals count of an erased run (run-totals.ts), as JSON text; absent for other leaves. */
  readonly kept?: string;
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

/** Rows of 10 bytes: one for each run. */
export const LEAVES_SCHEMA = `
  CREATE TABLE leaves (run_key INTEGER PRIMARY KEY, number INTEGER NOT NULL);
  CREATE TABLE erased (
    what TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, at TEXT NOT NULL, by TEXT, reason TEXT,
    PRIMARY KEY (what, id)
  ) WITHOUT ROWID;
`;

export interface LeafTable {
  save(row: LeafRow): void;
  /** The number of a run's leaf, or null if it has none or the run is erased. */
  leafOf(runId: string): number | null;
  /** The erasure of a run or a document, or null if it is not erased. */
  erasedAs(what: ErasureLeaf['what'], id: string): Erased | null;
}

export function leafTable(database: DatabaseSyncInstance): LeafTable {
  const save = database.prepare('INSERT OR REPLACE INTO leaves SELECT key, ? FROM runs WHERE id = ?');
  const erase = database.prepare('INSERT OR REPLACE INTO erased VALUES (?, ?, ?, ?, ?, ?)');
  const find = database.prepare('SELECT number FROM leaves WHERE run_key = (SELECT key FROM runs WHERE id = ?)');
  const findErased = database.prepare('SELECT number, at, by, reason FROM erased WHERE what = ? AND id = ?');
  return {
    save({ id, leaf }) {
      if (leaf.kind === 'run') save.run(Number(id), leaf.runId);
      else erase.run(leaf.what, leaf.id, Number(id), leaf.erasedAt, leaf.actor, leaf.reason);
    },
    leafOf: (runId) => numberOf(find.get(runId)),
    erasedAs(what, id) {
      const row: unknown = findErased.get(what, id);
      const [index, at] = [numberOf(row), textOf(row, 'at')];
      return index === null || at === null ? null : { index, at, by: textOf(row, 'by'), reason: textOf(row, 'reason') };
    },
  };
}

function numberOf(row: unknown): number | null {
  const number = fieldOf(row, 'number');
  return typeof number === 'number' ? number : null;
}
