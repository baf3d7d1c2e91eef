/** What a context is created from: settings, the data directory, the model, the clock, the logger. */
import type { DraftParser } from '../run/pending-events.js';
import type { System } from '../system/system.js';
import type { Logger } from '../system/logger.js';
import type { Config } from '../config.js';
import type { DataDirectory } from './data-directory.js';
import type { ChunkSearch } from '../search/document-search.js';
import type { PdfExtractor } from '../pdf/extract.js';
import type { openLog } from '../eventlog/open.js';
import type { EventConsumer } from '../projections/projector.js';
import type { Resolve } from '../webhooks/post.js';
import type { openViews } from '../projections/views/views-client.js';
import type { LanguageModel } from '../models/port.js';
import type { ChartCache } from '../run/chart/machine.js';
import type { SearchProvider } from '../council/tools/web-search.js';

export interface ContextDeps {
  readonly dataDir: DataDirectory;
  readonly model: LanguageModel;
  /** The web search of agents, if they have one. */
  readonly webSearch?: SearchProvider | null;
  readonly system: System;
  readonly logger: Logger;
  /** Called once when the log accepts no more appends in this process. The process must then be restarted. */
  readonly onLogBroken?: (error: unknown) => void;
  /** Called during the start: with true when the log does not answer, with false when it answers after that. */
  readonly onLogAway?: (isAway: boolean) => void;
  /** Further consumers of the log's events, after those of the context. */
  readonly consumers?: readonly EventConsumer[];
  /** Parts that tests replace. */
  readonly overrides?: Partial<ContextOverrides>;
}

export interface ContextOverrides {
  /** The document search of agents. Default: the uploaded documents. */
  readonly chunkSearch: ChunkSearch;
  /** Extracts the text of uploaded files. Default: in child processes. */
  readonly extractor: PdfExtractor;
  /** Reads drafts for councils. Default: a parser that is loaded when it is needed. */
  readonly drafts: DraftParser;
  /** The compiled charts, which contexts may share. */
  readonly charts: ChartCache;
  readonly openLog: typeof openLog;
  readonly openViews: typeof openViews;
  /** Finds the addresses of the hosts of webhooks. */
  readonly resolveHost: Resolve;
}

export type ContextConfig = Pick<
  Config,
  | 'prices'
  | 'proxies'
  | 'maxActiveRuns'
  | 'maxModelCalls'
  | 'modelOutageMs'
  | 'cluster'
  | 'eventStore'
  | 'embeddings'
  | 'pdfTimeoutMs'
>;

/** Receives warnings about the start. */
export interface StartLogger {
  warn(fields: object, message: string): void;
}

export interface ServiceDeps extends ContextDeps {
  readonly logger: Logger & StartLogger;
  /** Limit on open files, connections included; absent, or null if unknown. */
  readonly maxFiles?: number | null;
  /** Called once with the service's address, when it serves requests or refuses them because the log is away. */
  readonly onListening?: (url: string) => void;
}
