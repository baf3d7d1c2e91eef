import { expect } from 'chai';
import { stateValueOf } from '../../src/audit/chart.js';
import type { Graph, NodeUsage, RunBudget } from '../../src/generated/schemas.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import { BudgetRefused } from '../../src/run/errors.js';
import type { RunEvent } from '../../src/run/events.js';
import type { FrontierNode, RunState } from '../../src/run/state.js';
import { isFinished, pauseOf } from '../../src/run/state.js';
import { Budgets } from '../simulation/budgets.js';
import type { Story } from '../support/given.js';
import { activeNodes, attemptOf, failed, given } from '../support/given.js';
import { drawsOf, named, outputOf, randomGraph } from '../support/random-history.js';
import { IS_SOAK } from '../support/soak.js';

const GRAPHS = IS_SOAK ? 1_000 : 60;
const MAX_COMMANDS = 60;
const AMPLE = { tokens: 1_000_000, usd: 10_000 };

type Draws = ReturnType<typeof drawsOf>;

function budgetedGraph(draws: Draws): Graph {
  const graph = randomGraph(draws);
  return { ...graph, nodes: graph.nodes.map((node) => ({ ...node, maxOutputTokens: 100 })) };
}

/** A budget of a few calls; a token costs a cent. */
function budgetOf({ below, chance }: Draws): RunBudget {
  const tokens = 200 + below(3_000);
  const onExceeded = (['pause', 'fail', 'finish'] as const)[below(3)] ?? 'pause';
  return chance(0.3) ? { usd: tokens / 100, tokens: null, onExceeded } : { usd: null, tokens, onExceeded };
}

/** A usage that is known, unknown, or above every reservation. */
function usageOf({ below, chance }: Draws): { readonly usage: NodeUsage; readonly costUsd: number | null } {
  if (chance(0.15)) return { usage: { inputTokens: null, outputTokens: null }, costUsd: null };
  const inputTokens = chance(0.1) ? 5_000 : below(100);
  return { usage: { inputTokens, outputTokens: 3 }, costUsd: (inputTokens + 3) / 100 };
}

/** One random report of an attempt in flight. */
function reported(story: Story, at: FrontierNode, draws: Draws): Story {
  const { step, attempt, node } = at;
  if (draws.chance(0.15)) return story.when(failed(at, 0));
  if (draws.chance(0.2)) {
    const next = { step, attempt, texts: ['x'.repeat(draws.below(900))], tools: draws.below(3) };
    return story.when({ type: 'ReserveCall', next: { ...next, last: usageOf(draws), total: usageOf(draws) } });
  }
  const output = outputOf(story.run, node, step);
  return story.when({ type: 'CompleteNode', result: { step, attempt, output, ...usageOf(draws), durationMs: 1 } });
}

function decided(story: Story, draws: Draws): Story {
  if (draws.chance(0.1)) return story.whenDecided({ action: 'reject', modifiedState: null });
  const approve = { action: 'approve', modifiedState: null } as const;
  if (pauseOf(story.run)?.reason !== 'budget') return story.whenApproved();
  try {
    return story.whenDecided({ ...approve, budget: { tokens: 500 + draws.below(5_000) } });
  } catch (error) {
    expect(error).to.be.instanceOf(BudgetRefused);
    return story.whenDecided({ ...approve, budget: AMPLE });
  }
}

function afterNext(story: Story, draws: Draws): Story {
  const { run } = story;
  if (run.phase.status === 'paused') return decided(story, draws);
  if (run.ownership.owner === null) return story.when({ type: 'ClaimRun', reason: 'handover' });
  if (draws.chance(0.05)) return story.when({ type: 'ReleaseRun' });
  const active = activeNodes(run);
  return reported(story, attemptOf(run, active[draws.below(active.length)] ?? ''), draws);
}

function expectWithinBudget(events: readonly RunEvent[]): void {
  const budgets = new Budgets((holds, detail) => expect(holds, detail).to.equal(true));
  let before: RunState | null = null;
  for (const event of events) {
    const after: RunState = before === null ? firstOf(event) : evolve(before, event);
    budgets.take(event, { before, after });
    before = after;
  }
}

function firstOf(event: RunEvent): RunState {
  if (event.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  return firstState(event);
}

/** Expects after each event that the state in the drawn chart is that of the machine. */
function expectChartOf({ chart, events }: Story): void {
  const [first, ...rest] = events;
  let snapshot = chart.first(first);
  for (const event of rest) {
    snapshot = chart.next(snapshot, event);
    const shown = stateValueOf(snapshot.context.run, chart);
    expect(shown, `after ${event.seq} ${event.type}`).to.deep.equal(snapshot.value);
  }
}

describe('The budgets of random runs', () => {
  it('hold, also if the process dies after any append', () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= GRAPHS; seed += 1) {
      named(seed, () => {
        const draws = drawsOf(seed);
        const budget = budgetOf(draws);
        let story = given(budgetedGraph(draws), { budget, godMode: draws.chance(0.2) });
        for (let commands = 0; commands < MAX_COMMANDS && !isFinished(story.run); commands += 1) {
          if (story.run.phase.status === 'running') {
            expectWithinBudget(story.when({ type: 'ClaimRun', reason: 'recovered' }, 'two').events);
          }
          story = afterNext(story, draws);
        }
        expectWithinBudget(story.events);
        expectChartOf(story);
        for (const event of story.events) seen.add(endOf(event));
      });
    }
    expect([...seen]).to.include.members(['paused', 'failed', 'finished', 'stopped']);
  });
});

/** What a budget has led to with an event. */
function endOf({ type, data }: RunEvent): string {
  if (type === 'RunPaused' && data.reason === 'budget') return 'paused';
  if (type === 'RunFailed' && data.kind === 'budget_exceeded') return 'failed';
  if (type === 'RunCompleted' && data.endedBy === 'budget') return 'finished';
  return type === 'NodeFailed' && data.kind === 'budget_exceeded' ? 'stopped' : '';
}
