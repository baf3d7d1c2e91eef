/** The runs of this instance, and its place among others on the same log. */
import { Cluster } from '../cluster/cluster.js';
import type { ModelFailed } from '../errors.js';
import type { EventLog } from '../eventlog/port.js';
import { boundedModel } from '../models/bounded.js';
import type { ModelUse } from '../models/fair-semaphore.js';
import { withOffline } from '../models/offline.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { RunReader } from '../projections/run-reader.js';
import type { MachineCache } from '../run/machine.js';
import { RunRegistry } from '../run/live/registry.js';
import type { LiveRuns } from '../run/live/live-runs.js';
import type { OwnAppends } from '../run/live/own-appends.js';
import type { TokenBus } from '../run/live/tokens.js';
import type { EngineConfig, EngineDeps } from './context.js';
import type { ChunkSearch } from '../search/document-search.js';
import { pdfReader } from '../council/tools/pdf-reader.js';
import type { Toolbox } from '../council/tools/tool.js';
import type { SearchProvider } from '../council/tools/web-search.js';
import { webSearch } from '../council/tools/web-search.js';

export interface RunServicesDeps {
  readonly log: EventLog;
  readonly tokens: TokenBus;
  readonly charts: MachineCache;
  readonly chunkSearch: ChunkSearch;
  readonly corruptRuns: CorruptRuns;
  readonly ownAppends: OwnAppends;
  readonly instanceId: string;
  readonly liveRuns: LiveRuns;
  readonly reader: Pick<RunReader, 'assertReaches'>;
}

export interface RunServices {
  readonly registry: RunRegistry;
  /** Null where no other instance shares the log. */
  readonly cluster: Cluster | null;
  /** Models whose servers are out; runs wait for them. */
  readonly unreachableModels: () => readonly string[];
  /** Models that are being called here. */
  readonly modelUses: () => readonly ModelUse[];
}

/** The runs of this instance, and its place among others. */
export function runServices(
  { maxActiveRuns, maxModelCalls, modelOutageMs, cluster: times }: EngineConfig,
  { dataDir, model, webSearch = null, system, logger }: EngineDeps,
  { log, tokens, charts, chunkSearch, corruptRuns, ownAppends, instanceId, liveRuns, reader }: RunServicesDeps,
): RunServices {
  const bounded = boundedModel(withOffline(model, system), {
    maxCalls: maxModelCalls,
    outageMs: modelOutageMs,
    system,
    onOutage: (name, failure) => logOutage(logger, name, failure),
  });
  const registry: RunRegistry = new RunRegistry({
    ...{ log, tokens, ownAppends, system, instanceId, machines: charts, liveRuns, corruptRuns, reader, logger },
    model: bounded,
    tools: toolbox({ web: webSearch, chunkSearch }),
    maxActiveRuns,
    // Without other instances the owner of a run that is not run here is a process of the past.
    suspicions: { isSuspect: (owner) => cluster?.isSuspect(owner) ?? true },
  });
  const onFenced = (): void => logger.error({ instanceId }, 'the event log takes no heartbeat: letting all runs go');
  const onFault = (error: unknown): void => logger.error({ err: error }, 'heartbeat: fault');
  const cluster: Cluster | null =
    times === null
      ? null
      : new Cluster({
          ...times,
          log,
          system,
          instanceId,
          predecessors: dataDir.succeed(instanceId),
          registry,
          onFenced,
          onFault,
        });
  registry.subscribe({
    onRunUpdated(run) {
      if (!corruptRuns.has(run.runId)) cluster?.learned(run);
    },
  });
  return { registry, cluster, unreachableModels: () => bounded.unreachable(), modelUses: () => bounded.uses() };
}

function logOutage(logger: EngineDeps['logger'], model: string, failure: ModelFailed | null): void {
  if (failure === null) logger.info({ model }, 'model: its server is back');
  else logger.error({ model, kind: failure.data.kind }, `model: its server is out: ${failure.message}`);
}

/** The tools of an instance: one for each source that it has. */
export function toolbox(sources: {
  readonly web?: SearchProvider | null;
  readonly chunkSearch?: ChunkSearch | null;
}): Toolbox {
  const { web = null, chunkSearch = null } = sources;
  const tools = [...(web === null ? [] : [webSearch(web)]), ...(chunkSearch === null ? [] : [pdfReader(chunkSearch)])];
  return {
    available: () => tools.filter((tool) => tool.isAvailable()).map((tool) => tool.grant),
    granted: (grants) => tools.filter((tool) => grants.includes(tool.grant)),
  };
}
