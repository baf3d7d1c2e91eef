/** Transactions of the stored views, also where their disk is full. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/** What the thread says of rows that it has no room to store. */
export const VIEWS_FULL = 'views full';

interface Transactions {
  inTransaction(write: () => void): void;
  /**
   * The same, and where there is no room what is written is shown until the next write. Nothing of it is stored then.
   *
   * @throws {Error} `VIEWS_FULL`
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
        if (!(error instanceof Error && error.message.includes('disk is full'))) throw error;
        // It stays open: its connection sees it, and writes nothing of it to the disk.
        attempt('PRAGMA cache_spill = OFF; BEGIN', write);
        throw new Error(VIEWS_FULL, { cause: error });
      }
    },
  };
}
