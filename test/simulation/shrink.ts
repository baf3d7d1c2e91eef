/** Shrinks a failing plan: removes what is not needed to break the same invariant. */
import type { Plan } from './faults.js';
import { playHistory } from './history.js';

/** Removes one entry after the other, from the last to the first, until none can be removed. */
export async function shrinkPlan(plan: Plan, invariant: string): Promise<Plan> {
  const fails = async (smaller: Plan): Promise<boolean> => (await playHistory(smaller)).broken?.invariant === invariant;
  let least = plan;
  for (let before: Plan | null = null; before !== least;) {
    before = least;
    for (const smaller of [...without(least, 'faults'), ...without(least, 'requests')]) {
      const candidate = smaller(least);
      if (candidate !== null && (await fails(candidate))) least = candidate;
    }
  }
  return least;
}

/** One function per entry, which removes it from a plan, or returns null if it is gone. */
function without(plan: Plan, list: 'faults' | 'requests'): readonly ((from: Plan) => Plan | null)[] {
  return [...plan[list]].reverse().map((entry) => (from) => {
    const entries: readonly unknown[] = from[list];
    if (!entries.includes(entry)) return null;
    return list === 'faults'
      ? { ...from, faults: from.faults.filter((each) => each !== entry) }
      : { ...from, requests: from.requests.filter((each) => each !== entry) };
  });
}

/** A plan as readable text. */
export function planText({
  seed,
  rates,
  isCluster,
  maxActiveRuns,
  maxModelCalls,
  modelOutageMs,
  pace,
  runs,
  requests,
  faults,
}: Plan): string {
  const at = (ms: number): string => `${ms.toFixed(0).padStart(6)} ms`;
  return [
    `seed ${seed}: ${rates.length} ${isCluster ? 'instances' : 'instance alone'}, clocks ${rates.map((rate) => rate.toFixed(3)).join(' ')}`,
    `at most ${maxActiveRuns} runs, ${maxModelCalls} calls, outages of ${modelOutageMs} ms, all is mended at ${pace.repairedMs} ms`,
    ...runs.map(
      ({ graph, godMode, hasTools, budget, spending }, run) =>
        `run ${run}: ${graph}${godMode ? ', God Mode' : ''}${hasTools ? ', tools' : ''}, ${budget} steps${spending === undefined ? '' : `, budget ${JSON.stringify(spending)}`}`,
    ),
    ...requests.map(
      ({ kind, atMs, slot, run, parent }) =>
        `${at(atMs)}  ${kind} run ${run}${kind === 'fork' ? ` of ${parent}` : ''} at ${slot}`,
    ),
    ...faults.map(
      ({ kind, atMs, slot, forMs, mind = slot }) => `${at(atMs)}  ${kind} of ${mind} for ${forMs.toFixed(0)} ms`,
    ),
  ].join('\n');
}
