/** What an engine works with: the data directory, the model, the clock, the logger, and what tests replace. */
import type { System } from '../system/system.js';
import type { Logger } from '../system/logger.js';
import type { Config } from '../config.js';
import type { DataDirectory } from './data-directory.js';
import type { ChunkSearch } from '../search/document-search.js';
import type { PdfExtractor } from '../pdf/extract.js';
import type { openLog } from '../eventlog/open.js';
import type { openViews } from '../projections/views/views-client.js';
import type { KeyStore } from '../keys/store.js';
import type { LanguageModel } from '../models/port.js';
import type { MachineCache } from '../run/machine.js';
import type { SearchProvider } from '../council/tools/web-search.js';

export interface EngineDeps {
  readonly dataDir: DataDirectory;
  readonly model: LanguageModel;
  /** What agents search the web with; absent: nothing. */
  readonly webSearch?: SearchProvider | null;
  readonly system: System;
  readonly logger: Logger;
  /** Called once when the log can take nothing more in this process, which has to be restarted. */
  readonly onLogBroken?: (error: unknown) => void;
  /** Called during the start: with true when the log does not answer, with false when it answers after that. */
  readonly onLogAway?: (isAway: boolean) => void;
  /** Called with the keys of the log, before the engine changes anything else in `dataDir`. A rejection ends the start. */
  readonly onKeys?: (keys: KeyStore) => Promise<void>;
  /** Called with each run that ends, on whatever instance; perhaps more than once. Must not throw. */
  readonly onRunEnded?: (runId: string) => void;
  /** What tests replace. */
  readonly overrides?: Partial<EngineOverrides>;
}

/** Parts of an engine that tests replace. */
export interface EngineOverrides {
  /** What agents search documents with, else what was uploaded here. */
  readonly chunkSearch: ChunkSearch;
  /** What has the text of uploaded files, else child processes. */
  readonly extractor: PdfExtractor;
  /** The compiled charts, which engines may share. */
  readonly charts: MachineCache;
  readonly openLog: typeof openLog;
  readonly openViews: typeof openViews;
}

export type EngineConfig = Pick<
  Config,
  'maxActiveRuns' | 'maxModelCalls' | 'modelOutageMs' | 'cluster' | 'eventStore' | 'embeddings' | 'pdfTimeoutMs'
>;
