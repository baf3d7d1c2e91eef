/** The councils that a process runs when it is killed; its arguments could not hold their materials. */
import type { RunBudget, RunRequestedData } from '../../src/generated/schemas.js';
import { graphOf } from './given.js';
import { runRequest } from './open-engine.js';
import { FOUR_MINDS_WITH_OUTPUT, LONG_MATERIAL } from './panel-graph.js';

const budget = (tokens: number): RunBudget => ({ tokens, usd: null, onExceeded: 'fail' });

const COUNCILS = {
  /** The fixed graph: three rounds and the writer. */
  fixed: {},
  /** Two branches, every pause approved. */
  'God Mode': { graph: graphOf('plan -> left, right; left, right -> meet'), godMode: true },
  /** A panel of four with a rank, a judge, a long material and an output. */
  panel: { graph: FOUR_MINDS_WITH_OUTPUT, material: LONG_MATERIAL },
  /** The fixed graph, whose critics are asked twice, with an ample budget. */
  'two calls': { budget: budget(1_000_000) },
};

export type CrashedCouncil = keyof typeof COUNCILS;

/** The request of a run, whose topic is its id. */
export function crashedRequest(council: CrashedCouncil, runId: string): RunRequestedData {
  return runRequest(runId, { topic: runId, ...COUNCILS[council] });
}
