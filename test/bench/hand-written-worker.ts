/** The thread of hand-written.ts that writes: each batch of rows is one durable transaction. */
import { DatabaseSync } from '@photostructure/sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Row } from './hand-written.js';

const database = new DatabaseSync(String(workerData));
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA locking_mode = EXCLUSIVE');
database.exec('CREATE TABLE runs (number INTEGER PRIMARY KEY, id TEXT UNIQUE)');
database.exec('CREATE TABLE events (run INTEGER, seq INTEGER, data TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID');
const begin = database.prepare('INSERT INTO runs (id) VALUES (?)');
const insert = database.prepare('INSERT INTO events VALUES ((SELECT number FROM runs WHERE id = ?), ?, ?)');
parentPort?.on('message', (rows: readonly Row[]) => {
  database.exec('BEGIN');
  for (const { run, seq, data } of rows) {
    if (seq === 0) begin.run(run);
    insert.run(run, seq, data);
  }
  database.exec('COMMIT');
  parentPort?.postMessage('written');
});
