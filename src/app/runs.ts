/** The runs of this instance, and its place among others on the same log. */
import { Cluster } from '../cluster/cluster.js';
import type { ModelFailed } from '../errors.js';
import { RunCorrupt } from '../run/errors.js';
import type { EventLog } from '../eventlog/port.js';
import { boundedModel } from '../models/bounded.js';
import type { ModelUse } from '../models/fair-semaphore.js';
import { withOffline } from '../models/offline.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { RunReader } from '../projections/run-reader.js';
import type { MachineCache } from '../run/machine.js';
import { RunRegistry } from '../run/live/registry.js';
import type { RunState } from '../run/state.js';
import { failureOf } from '../run/state.js';
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
  /** See `RegistryOptions`. */
  readonly onWhole?: (runId: string) => void;
  /** Asked before a command is decided. Default: whatever is recorded is decided on. */
  readonly reader?: Pick<RunReader, 'assertReaches'>;
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
  { log, tokens, charts, chunkSearch, corruptRuns, ownAppends, instanceId, onWhole, reader }: RunServicesDeps,
): RunServices {
  const bounded = boundedModel(withOffline(model, system), {
    maxCalls: maxModelCalls,
    outageMs: modelOutageMs,
    system,
    onOutage: (name, failure) => logOutage(logger, name, failure),
  });
  const registry: RunRegistry = new RunRegistry(
    {
      log,
      model: bounded,
      tools: toolbox({ web: webSearch, chunkSearch }),
      tokens,
      ownAppends,
      system,
      instanceId,
      onFault(runId, error) {
        if (error instanceof RunCorrupt) corruptRuns.mark(error);
        else logger.error({ runId, err: error }, 'run: fault');
      },
    },
    charts,
    {
      maxActiveRuns,
      // Without other instances the owner of a run that is not run here is a process of the past.
      isSuspect: (owner) => cluster?.isSuspect(owner) ?? true,
      onLeft: (run) => logger.info(outcomeOf(run), `run ${run.phase.status}`),
      onLearned(run) {
        if (!corruptRuns.has(run.runId)) cluster?.learned(run);
      },
      corruptRuns: {
        found: (error) => corruptRuns.mark(error),
        assertNotCorrupt: (runId) => corruptRuns.assertNotCorrupt(runId),
      },
      ...(onWhole !== undefined && { onWhole }),
      ...(reader !== undefined && { assertReaches: (runId: string) => reader.assertReaches(runId) }),
    },
  );
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
  return { registry, cluster, unreachableModels: () => bounded.unreachable(), modelUses: () => bounded.uses() };
}

function logOutage(logger: EngineDeps['logger'], model: string, failure: ModelFailed | null): void {
  if (failure === null) logger.info({ model }, 'model: its server is back');
  else logger.error({ model, kind: failure.data.kind }, `model: its server is out: ${failure.message}`);
}

/** The fields of a run in the service's own log when it leaves memory: never a draft. */
function outcomeOf(run: RunState): object {
  const { runId, phase, request, progress } = run;
  const failure = failureOf(run);
  return {
    runId,
    status: phase.status,
    executionMode: request.executionMode,
    iterationCount: progress.iterationCount,
    score: progress.shown.score,
    ...(failure === null ? {} : { failure: failure.kind }),
  };
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
