/** Follows the runs that the councils of a run have started. */
import { council } from '../../shell/council.js';
import type { RunRow } from '../runs/run-row.js';
import { ROW_EVENTS, isOver, rowAfter, rowOf } from '../runs/run-row.js';

/** Events between reading the runs and the start of the feed are in neither: after this time the runs are read again. */
const READ_AGAIN_MS = 1_000;

/** Gives each run as it is, and again after its events, until the abort. */
export async function followChildren(
  parentId: string,
  onRow: (row: RunRow) => void,
  signal: AbortSignal,
): Promise<void> {
  const rows = new Map<string, RunRow>();
  function put(row: RunRow): void {
    rows.set(row.id, row);
    onRow(row);
  }
  async function read(): Promise<void> {
    for await (const record of council.runs.list({ parentRun: parentId, signal })) put(rowOf(record));
  }
  async function follow(): Promise<void> {
    for await (const event of council.feed({ from: 'head', types: ROW_EVENTS, signal })) {
      if (event.parent_run?.run_id !== parentId) continue;
      const row = rows.get(event.run_id);
      put(row === undefined ? rowOf(await council.runs.get(event.run_id, { signal })) : rowAfter(row, event));
    }
  }
  async function readAgain(): Promise<void> {
    await new Promise((resolve) => window.setTimeout(resolve, READ_AGAIN_MS));
    if (![...rows.values()].every(isOver)) await read();
  }
  await Promise.all([follow(), read().then(readAgain)]);
}
