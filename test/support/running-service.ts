/** The real service on a free port and a new folder, for tests of the edges. */
import { withOffline } from './with-offline.js';
import { hostname } from 'node:os';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Config } from '../../src/config.js';
import { readConfig } from '../../src/config.js';
import type { Context } from '../../src/app/context.js';
import { openDataDirectory } from '../../src/app/data-directory.js';
import { offlineModel } from '../../src/models/offline.js';
import { openLog } from '../../src/eventlog/open.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import type { SearchProvider } from '../../src/council/tools/web-search.js';
import { startService as start } from '../../src/app/service.js';
import type { Resolve } from '../../src/webhooks/post.js';
import { tempDir } from './temp-dir.js';
import { eventStoreFor } from './test-event-store.js';

export interface ServiceOverrides extends Partial<Config> {
  readonly model?: LanguageModel;
  readonly system?: System;
  readonly extractor?: PdfExtractor;
  /** Finds the addresses of the hosts of webhooks. */
  readonly resolveHost?: Resolve;
  /** Searches the web for agents. */
  readonly search?: SearchProvider;
  /** Wraps its log. */
  readonly decorate?: (log: EventLog) => EventLog;
}

/** A busy machine may be slow. */
const PDF_TIMEOUT_MS = 300_000;

export interface RunningService {
  /** `http://127.0.0.1:PORT`, no trailing slash. */
  readonly url: string;
  readonly dataDir: string;
  /** Its context, for calls that bypass HTTP. */
  readonly context: Context;
  /** Logged lines that are not errors. */
  readonly lines: readonly { readonly msg: string }[];
  /** Logged errors. */
  readonly faults: readonly object[];
  /** Stops the service and removes its folder unless the test gave one. May be called twice. */
  stop(): Promise<void>;
}

/** Starts the service with default settings, and the offline model unless a model is given. */
export async function startService({
  model,
  system,
  extractor,
  resolveHost,
  decorate = (log) => log,
  search,
  ...overrides
}: ServiceOverrides = {}): Promise<RunningService> {
  const dir = overrides.dataDir === undefined ? tempDir() : null;
  const path = overrides.dataDir ?? dir?.path ?? '';
  const clock = system ?? nodeSystem();
  const dataDir = openDataDirectory(path, { pid: process.pid, hostname: hostname(), startedAt: clock.now() });
  const faults: object[] = [];
  const config = {
    ...readConfig({}),
    port: 0,
    pdfTimeoutMs: PDF_TIMEOUT_MS,
    eventStore: eventStoreFor(path),
    ...overrides,
    dataDir: path,
  };
  const lines: { readonly msg: string }[] = [];
  const starting = start(config, {
    dataDir,
    system: clock,
    webSearch: search ?? null,
    model: withOffline(model ?? offlineModel({ system: clock }), clock),
    overrides: {
      ...(extractor !== undefined && { extractor }),
      ...(resolveHost !== undefined && { resolveHost }),
      openLog: async (at) => decorate(await openLog(at)),
    },
    logger: {
      info: (fields, msg) => void lines.push({ ...fields, msg }),
      warn: (fields, msg) => void lines.push({ ...fields, msg }),
      error: (fields) => void faults.push(fields),
    },
  });
  const service = await starting.catch((error: unknown) => {
    dataDir.release();
    dir?.remove();
    throw error;
  });
  let stopping: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await service.stop();
    dataDir.release();
    dir?.remove();
  };
  return {
    url: service.url,
    context: service.context,
    dataDir: path,
    lines,
    faults,
    stop: () => (stopping ??= stop()),
  };
}
