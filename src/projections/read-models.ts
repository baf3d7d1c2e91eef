/** Opens the stored read models of this process with the reader they use. */
import type { System } from '../system/system.js';
import { RunReader } from '../run/runs/reader.js';
import type { LiveRuns } from '../run/runs/repository.js';
import { RunStates } from '../run/runs/states.js';
import type { EventLog } from '../eventlog/port.js';
import { CorruptRuns } from './corrupt-runs.js';
import { History } from './run-history.js';
import { assertNotErased } from './run-queries.js';
import type { ViewsOptions } from './views/views-client.js';
import { openViews } from './views/views-client.js';

export interface ReadModelsOptions extends ViewsOptions {
  /** The log they are folded from, which `log` names. */
  readonly from: EventLog;
  readonly system: Pick<System, 'after' | 'sha256'>;
  readonly onFault: (error: unknown) => void;
  /** The runs of actors in this process. The actors know the record, so their rows are not compared with it. */
  readonly live: LiveRuns;
  /** Opens the stored rows. Default: the file. */
  readonly open?: typeof openViews | undefined;
}

/** Called when the stored views are lost and must be folded again. */
export interface ViewsObserver {
  onViewsLost(cause: unknown): void;
}

export interface ReadModels {
  readonly history: History;
  readonly corruptRuns: CorruptRuns;
  /** The reader for answers. It compares the end of a record with its stored row, see `RunReaderOptions.seen`. */
  readonly reader: RunReader;
  readonly states: RunStates;
  subscribe(observer: ViewsObserver): void;
  /** Closes the file. Rows that are not written are folded again at the next start. */
  close(): Promise<void>;
}

/** Opens the file of the stored views; rejects when it cannot be opened. */
export async function openReadModels({
  from,
  system,
  onFault,
  live,
  open = openViews,
  ...options
}: ReadModelsOptions): Promise<ReadModels> {
  const observers: ViewsObserver[] = [];
  const stored = await open(options, {
    system,
    onFault,
    onLost: (cause) => observers.forEach((observer) => observer.onViewsLost(cause)),
    corruptRuns: () => corruptRuns.all(),
  });
  const corruptRuns = new CorruptRuns({
    known: stored.corruptRuns,
    store: stored.saveCorrupt,
    remove: stored.removeCorrupt,
    onFault,
  });
  const readerOptions = { log: from, sha256: system.sha256, corruptRuns };
  // This reader must not use stored rows to detect truncation, because it rebuilds them.
  const states = new RunStates(new RunReader(readerOptions));
  const history = new History({ views: stored, system, onFault });
  const reader = new RunReader({
    ...readerOptions,
    async seen(runId) {
      if (live.has(runId)) return null;
      const seen = states.get(runId)?.head.seq ?? (await history.find(runId))?.seq ?? null;
      // Its events may be in the log for a moment longer.
      if (seen === null) await assertNotErased(history, runId);
      return seen;
    },
  });
  return {
    history,
    corruptRuns,
    reader,
    states,
    subscribe: (observer) => void observers.push(observer),
    close: () => stored.close(),
  };
}
