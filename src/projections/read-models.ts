/** Opens the stored read models of this process with the reader they use. */
import type { System } from '../system/system.js';
import type { RunCorrupt } from '../run/errors.js';
import type { EventLog } from '../eventlog/port.js';
import { CorruptRuns } from './corrupt-runs.js';
import { History } from './run-history.js';
import { RunReader } from './run-reader.js';
import { RunsInMemory } from './runs-in-memory.js';
import type { ViewsOptions } from './views/views-client.js';
import { openViews } from './views/views-client.js';

export interface ReadModelsOptions extends ViewsOptions {
  /** The log they are folded from, which `log` names. */
  readonly from: EventLog;
  readonly system: Pick<System, 'after' | 'sha256'>;
  /** Called once per run, when it is found corrupt. */
  readonly onCorrupt: (error: RunCorrupt) => void;
  /** Called when the stored views have failed, with the cause: they have to be folded again. */
  readonly onLost: (cause: unknown) => void;
  readonly onFault: (error: unknown) => void;
  /** Whether a run is live here: its actor knows the record, and is not asked for the row as well. */
  readonly isLive: (runId: string) => boolean;
  /** Opens the stored rows. Default: the file. */
  readonly open?: typeof openViews | undefined;
}

export interface ReadModels {
  readonly history: History;
  readonly corruptRuns: CorruptRuns;
  /** For what is shown: it compares the end of a record with its stored row, see `RunReaderOptions.seen`. */
  readonly reader: RunReader;
  readonly views: RunsInMemory;
  /** Closes the file; what is not written is folded again. */
  close(): Promise<void>;
}

/** Opens the file of the stored views; rejects when it cannot be opened. */
export async function openReadModels({
  from,
  system,
  onCorrupt,
  onLost,
  onFault,
  isLive,
  open = openViews,
  ...options
}: ReadModelsOptions): Promise<ReadModels> {
  const stored = await open(options, {
    ...{ system, onFault },
    onLost,
    corruptRuns: () => corruptRuns.all(),
  });
  const corruptRuns = new CorruptRuns({
    known: stored.corruptRuns,
    store: stored.saveCorrupt,
    remove: stored.removeCorrupt,
    onFound: onCorrupt,
    onFault,
  });
  const readerOptions = { log: from, sha256: system.sha256, corruptRuns };
  // This reader must not use stored rows to detect truncation: it is what rebuilds them.
  const source = new RunReader(readerOptions);
  const history = new History({ views: stored, system, onFault });
  const reader = new RunReader({
    ...readerOptions,
    seen: async (runId) => (isLive(runId) ? null : (views.headSeq(runId) ?? (await history.find(runId))?.seq ?? null)),
  });
  const views: RunsInMemory = new RunsInMemory(source, { assertReaches: (runId) => reader.assertReaches(runId) });
  return { history, corruptRuns, reader, views, close: () => stored.close() };
}
