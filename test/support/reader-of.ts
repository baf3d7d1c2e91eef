import { nodeSystem } from '../../src/system/system.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { RunReader } from '../../src/run/runs/reader.js';

/** A reader of a log's runs that throws at a corrupt run and does not remember it. */
export function readerOf(log: EventLog): RunReader {
  return new RunReader({
    log,
    sha256: nodeSystem().sha256,
    corruptRuns: { mark: () => undefined, assertNotCorrupt: () => undefined },
  });
}
