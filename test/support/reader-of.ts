import { nodeSystem } from '../../src/system/system.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { RunReader } from '../../src/projections/run-reader.js';

/** A reader of the runs of a log; what it finds damaged it only throws. */
export function readerOf(log: EventLog): RunReader {
  return new RunReader({
    log,
    sha256: nodeSystem().sha256,
    corruptRuns: { mark: () => undefined, assertNotCorrupt: () => undefined },
  });
}
