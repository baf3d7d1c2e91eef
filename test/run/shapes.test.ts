import { expect } from 'chai';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import type { RunCommand } from '../../src/run/decide.js';
import { decide } from '../../src/run/decide.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import { asRecorded } from '../../src/run/live/actor.js';
import type { Chart } from '../../src/run/machine.js';
import { compileChart } from '../../src/run/machine.js';
import type { DecisionContext } from '../../src/run/pending-events.js';
import { requestRun } from '../../src/run/request.js';
import { sealAppend } from '../../src/eventsourcing/handle-command.js';
import { factsAfter } from '../../src/run/stream.js';
import { attemptOf, completed, graphOf, underWay } from '../support/given.js';
import { manualSystem } from '../support/manual-system.js';
import { runRequest } from '../support/open-engine.js';

setFlagsFromString('--allow-natives-syntax');
const haveSameShape = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean;

const GRAPH = graphOf('write -> judge?; judge -approve-> polish; judge -rework-> write');
const CONTEXT: DecisionContext = {
  at: '2026-01-01T00:00:00.000Z',
  instanceId: 'one',
  defaultModel: 'model-1',
  tools: [],
  sha256: (text) => String(text.length),
};

/** Runs that teach the chart its moves and the engine what it meets: before that it makes objects another way. */
const WARM_UP = 30;

/**
 * Of two runs alike each object is of the same hidden class. One made by a literal that begins with a spread and then
 * adds members is not: on Node 20 every evaluation makes a class, which stays until the next full collection.
 */
describe('What is made on the way of every event', () => {
  it('has the shape it had in the run before', () => {
    const chart = compileChart(GRAPH);
    for (let i = 0; i < WARM_UP; i += 1) playedOut(chart);
    const [one, other] = [playedOut(chart), playedOut(chart)];
    expect([...one.keys()]).to.deep.equal([...other.keys()]);
    const differing = [...one].filter(([name, object]) => !haveSameShape(object, other.get(name) ?? {}));
    expect(differing.map(([name]) => name)).to.deep.equal([]);
    expect(one.size).to.be.greaterThan(150);
  });

  it('would be found to differ where a literal begins with a spread and then adds a member', () => {
    const made = (base: object, added: number): object => ({ ...base, added });
    const base = { some: 1 };
    for (let i = 0; i < WARM_UP; i += 1) made(base, i);
    const first = { added: 1, ...base };
    expect(haveSameShape(first, { added: 2, ...base })).to.equal(true);
    const differs = !haveSameShape(made(base, 1), made(base, 2));
    // Later versions may know better.
    expect(differs || !process.version.startsWith('v20.')).to.equal(true);
  });
});

/** A run from its request to its end, as its actor and the projector take it: what was made, by where it was made. */
function playedOut(chart: Chart): ReadonlyMap<string, object> {
  const made = new Map<string, object>();
  const deps = { system: manualSystem(), instanceId: 'one' };
  const requested = runRequest('00000000-0000-4000-8000-000000000001', { graph: GRAPH });
  const first = sealAppend(
    deps,
    factsAfter(null, requested.runId, requestRun(chart, requested, { claim: true, context: CONTEXT })),
  );
  const [begun, ...claimed] = first.recorded;
  if (begun?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  let snapshot = claimed.reduce((before, fact) => chart.next(before, fact), chart.first(begun));
  let folded = claimed.reduce(evolve, firstState(begun));
  for (let turn = 0; snapshot.status === 'active'; turn += 1) {
    const { run } = snapshot.context;
    const [node = ''] = underWay(run);
    const output = node === 'judge' ? { score: turn < 3 ? 5 : 9, feedback: 'More' } : { draft: `Draft ${turn}` };
    const command: RunCommand = completed(attemptOf(run, node), output);
    const pending = decide(chart, snapshot, { command, context: CONTEXT });
    const sealed = sealAppend(deps, { at: CONTEXT.at, ...factsAfter(run.head, run.runId, pending.facts) });
    snapshot = asRecorded(pending.snapshot, sealed.recorded.at(-1));
    folded = sealed.recorded.reduce(evolve, folded);
    const assignments = [...pending.assignments.values()];
    made.set(`turn ${turn} snapshot`, snapshot);
    keep(made, `turn ${turn}`, { assignments, run: snapshot.context.run, folded, facts: pending.facts, ...sealed });
  }
  return made;
}

/** Every object within a value, but for what belongs to the graph. Lists are of a few classes that last. */
function keep(made: Map<string, object>, name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) made.set(name, value);
  for (const [key, part] of Object.entries(value)) {
    if (key !== 'plan' && key !== 'limits' && key !== 'scores') keep(made, `${name} ${key}`, part);
  }
}
