/** The leaves of the ledger in the stored views: which leaf a run has, and what is erased. In the views worker. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Erased, ErasureLeaf, Leaf } from '../../ledger/events.js';
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

/** One small row for each run that has ended. */
export const LEAVES_SCHEMA = `
  CREATE TABLE ends (
    -- In the order in which the log has the ends.
    place INTEGER PRIMARY KEY,
    run_key INTEGER NOT NULL UNIQUE,
    leaf INTEGER
  );
  CREATE INDEX ends_without_leaf ON ends (place) WHERE leaf IS NULL;
  CREATE TABLE erased (
    what TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, at TEXT NOT NULL, by TEXT, reason TEXT,
    PRIMARY KEY (what, id)
  ) WITHOUT ROWID;
`;

const KEY = '(SELECT key FROM runs WHERE id = ?)';

export interface LeafTable {
  /** Notes that a run has ended. */
  saveEnd(runId: string): void;
  save(row: LeafRow): void;
  /** Ids of the first runs that have ended and have no leaf, in the order in which the log has their ends. */
  endedWithoutLeaf(max: number): readonly string[];
  /** The number of a run's leaf, or null if it has none or the run is erased. */
  leafOf(runId: string): number | null;
  /** The erasure of a run or a document, or null if it is not erased. */
  erasedAs(what: ErasureLeaf['what'], id: string): Erased | null;
}

export function leafTable(database: DatabaseSyncInstance): LeafTable {
  const saveEnd = database.prepare('INSERT OR IGNORE INTO ends (run_key) SELECT key FROM runs WHERE id = ?');
  const save = database.prepare(`UPDATE ends SET leaf = ? WHERE run_key = ${KEY}`);
  const erase = database.prepare('INSERT OR REPLACE INTO erased VALUES (?, ?, ?, ?, ?, ?)');
  const find = database.prepare(`SELECT leaf AS number FROM ends WHERE run_key = ${KEY}`);
  const without = database.prepare(
    `SELECT id FROM ends JOIN runs ON key = run_key
     WHERE leaf IS NULL AND status IN ('completed', 'failed') ORDER BY place LIMIT ?`,
  );
  const findErased = database.prepare('SELECT number, at, by, reason FROM erased WHERE what = ? AND id = ?');
  return {
    saveEnd: (runId) => void saveEnd.run(runId),
    endedWithoutLeaf: (max) => without.all(max).flatMap((row) => textOf(row, 'id') ?? []),
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
