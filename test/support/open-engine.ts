/** Opens a test engine: the service's `Context` on a folder, without HTTP, for tests and benchmarks. */
import { hostname } from 'node:os';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import type { ClusterSettings } from '../../src/cluster/failure-detector.js';
import type { Config, EventStoreSettings } from '../../src/config.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { openDataDirectory } from '../../src/app/data-directory.js';
import { openLog } from '../../src/eventlog/open.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { ChunkSearch } from '../../src/search/document-search.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import type { LanguageModel } from '../../src/models/port.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { buildRunRequest } from '../../src/run/request.js';
import type { Context } from '../../src/app/context.js';
import type { ContextOverrides } from '../../src/app/context-deps.js';
import { openContext } from '../../src/app/context.js';
import type { Graph, RunBudget, RunRequestedData } from '../../src/generated/schemas.js';
import { NO_PROXIES } from './no-proxies.js';
import { withOffline } from './with-offline.js';
import { eventStoreFor } from './test-event-store.js';
import type { SearchProvider } from '../../src/council/tools/web-search.js';

export interface OpenEngineOptions {
  readonly path: string;
  readonly model: LanguageModel;
  readonly webSearch?: SearchProvider;
  readonly chunkSearch?: ChunkSearch;
  readonly embeddings?: Config['embeddings'];
  readonly extractor?: PdfExtractor;
  readonly maxActiveRuns?: number;
  readonly maxModelCalls?: number;
  readonly modelOutageMs?: number;
  /** Default: the shipped ones alone. */
  readonly prices?: Config['prices'];
  readonly system?: System;
  /** Cluster settings, if several engines share a log. */
  readonly cluster?: ClusterSettings | undefined;
  /** The server of its log. Default: the embedded log in the folder, or the server that tests run on. */
  readonly eventStore?: EventStoreSettings | undefined;
  /** Opens its log. Default: the embedded log in the folder. */
  readonly openLog?: ContextOverrides['openLog'];
  /** Wraps its log. */
  readonly decorate?: (log: EventLog) => EventLog;
}

export interface TestEngine extends Context {
  /** Recovers unfinished runs after the read models have caught up. */
  recover(): Promise<void>;
  readonly faults: unknown[];
}

/** Opens the engine on a folder; `stop` also releases the folder. Collects logged errors in `faults`. */
export async function openTestEngine(options: OpenEngineOptions): Promise<TestEngine> {
  const system = options.system ?? nodeSystem();
  const dataDir = openDataDirectory(options.path, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  const { decorate = (log: EventLog) => log, openLog: open = openLog } = options;
  const faults: unknown[] = [];
  const engine = await openContext(
    {
      ...limitsOf(options),
      cluster: options.cluster ?? null,
      eventStore: serverOf(options),
      embeddings: options.embeddings ?? null,
      proxies: NO_PROXIES,
      pdfTimeoutMs: 300_000,
    },
    {
      dataDir,
      model: withOffline(options.model, system),
      webSearch: options.webSearch ?? null,
      system,
      logger: { info: () => undefined, error: (fields) => void faults.push(fields) },
      overrides: {
        ...(options.chunkSearch !== undefined && { chunkSearch: options.chunkSearch }),
        ...(options.extractor !== undefined && { extractor: options.extractor }),
        openLog: async (at) => decorate(await open(at)),
      },
    },
  ).catch((error: unknown) => {
    dataDir.release();
    throw error;
  });
  const stop = async (): Promise<void> => {
    await engine.stop();
    dataDir.release();
  };
  const recover = async (): Promise<void> => engine.recovery.recover(await engine.recovery.unfinished());
  return { ...engine, recover, stop, faults };
}

function limitsOf({
  maxActiveRuns = 1_000,
  maxModelCalls = 1_000,
  modelOutageMs = 120_000,
  prices = null,
}: OpenEngineOptions): Pick<Config, 'maxActiveRuns' | 'maxModelCalls' | 'modelOutageMs' | 'prices'> {
  return { maxActiveRuns, maxModelCalls, modelOutageMs, prices };
}

function serverOf({ eventStore, path }: OpenEngineOptions): EventStoreSettings | null {
  return eventStore ?? eventStoreFor(path);
}

/** Reads the names of models where no provider is configured: a node without a model asks `model-1`. */
export function plainName(model = 'model-1'): string {
  return model;
}

/** The data of RunRequested for the fixed graph, or another graph. */
export function runRequest(
  runId: string,
  {
    topic = 'The sea',
    graph = fixedGraph({ timeoutMs: 10_000, maxAttempts: 4 }),
    godMode = false,
    material,
    budget,
  }: {
    readonly topic?: string;
    readonly material?: string;
    readonly graph?: Graph;
    readonly godMode?: boolean;
    readonly budget?: RunBudget | undefined;
  } = {},
): RunRequestedData {
  const { sha256 } = nodeSystem();
  return buildRunRequest({
    runId,
    inputTopic: topic,
    material,
    godMode,
    blueprint: godMode ? { id: 'blueprint', name: 'Blueprint' } : null,
    graph,
    graphHash: sha256(canonical(graph)),
    keyHash: null,
    bodyHash: sha256(topic),
    actor: null,
    budget,
  });
}
