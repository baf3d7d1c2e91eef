/** Transactions of the stored views, also on a full disk. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { fieldOf } from '../../system/untrusted.js';
import { ViewsFull } from '../errors.js';

/** SQLITE_FULL of https://sqlite.org/rescode.html */
const SQLITE_FULL = 13;

interface Transactions {
  inTransaction(write: () => void): void;
  /**
   * The same. On a full disk, queries see the rows until the next write, but the rows are not stored.
   *
   * @throws {ViewsFull}
   */
  shown(write: () => void): void;
}

export function transactions(database: DatabaseSyncInstance): Transactions {
  const undo = (): void => {
    if (database.isTransaction) database.exec('ROLLBACK; PRAGMA cache_spill = ON');
  };
  const attempt = (settings: string, act: () => void): void => {
    undo();
    database.exec(settings);
    try {
      act();
    } catch (error) {
      undo();
      throw error;
    }
  };
  const inTransaction = (write: () => void): void => {
    attempt('BEGIN', () => {
      write();
      database.exec('COMMIT');
    });
  };
  return {
    inTransaction,
    shown(write) {
      try {
        inTransaction(write);
      } catch (error) {
        if (fieldOf(error, 'errcode') !== SQLITE_FULL) throw error;
        // The transaction stays open, so that its connection sees the rows without a write to the disk.
        attempt('PRAGMA cache_spill = OFF; BEGIN', write);
        throw new ViewsFull({ cause: error });
      }
    },
  };
}
