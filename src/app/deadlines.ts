/** The deadlines of pauses, wired to the runs of this instance and the stored views. */
import type { Cluster } from '../cluster/cluster.js';
import type { CorruptRuns } from '../projections/corrupt-runs.js';
import type { History } from '../projections/run-history.js';
import { Deadlines } from '../run/live/deadlines.js';
import type { RunRegistry } from '../run/live/registry.js';
import type { EngineDeps } from './context.js';

/** Longest random wait before one of several instances acts, in milliseconds. */
const SPREAD_MS = 250;

export interface PauseDeadlinesDeps extends Pick<EngineDeps, 'system' | 'logger'> {
  readonly registry: Pick<RunRegistry, 'passDeadline'>;
  readonly history: Pick<History, 'deadlines'>;
  /** Null where no other instance shares the log. */
  readonly cluster: Cluster | null;
  readonly corruptRuns: Pick<CorruptRuns, 'has'>;
}

/** Acts on the deadlines of pauses, except those of corrupt runs. */
export function pauseDeadlines(deps: PauseDeadlinesDeps): Deadlines {
  const { registry, history, cluster, corruptRuns, system, logger } = deps;
  return new Deadlines({
    system,
    spreadMs: cluster === null ? 0 : SPREAD_MS,
    stored: (max) => history.deadlines(max),
    pass: async (runId) => (corruptRuns.has(runId) ? null : await registry.passDeadline(runId)),
    onFault: (runId, err) => logger.error({ runId, err }, 'deadline of a pause: fault'),
  });
}
