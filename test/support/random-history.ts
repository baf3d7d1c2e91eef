/** Random histories of random graphs, for tests of properties of runs. */
import { withFullNames } from '../../src/graph/models-asked.js';
import { OverrideRefused } from '../../src/run/pauses/override.js';
import type { Graph, GraphNode, NodeOutput, StateOverride } from '../../src/generated/schemas.js';
import { openPanels } from '../../src/run/panels/panels.js';
import type { RunState } from '../../src/run/state.js';
import { isFinished, pauseOf } from '../../src/run/state.js';
import type { Story } from './given.js';
import { attemptOf, completed, failed, given, graphWith, usedTool, activeNodes } from './given.js';
import { plainName } from './open-engine.js';
import { seededRandom } from './seeded-random.js';

/** Random draws that a seed determines. */
export function drawsOf(seed: number) {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  return { below, chance: (share: number): boolean => random() < share };
}

type Draws = ReturnType<typeof drawsOf>;

/** A random graph of up to seven nodes, with forks, loops, joins and dead ends; half of them with panels. */
export function randomGraph(draws: Draws): Graph {
  const { below, chance } = draws;
  const ids = Array.from({ length: 1 + below(7) }, (_, index) => `n${index}`);
  const hasPanels = chance(0.5);
  const nodes = ids.map((id) => ({
    id,
    role: chance(0.35) ? ('critic' as const) : ('agent' as const),
    ...(hasPanels && chance(0.5) && deliberating(draws)),
  }));
  const edges: Graph['edges'] = [];
  const link = (source: string, condition: string | null, at: number): void => {
    const target = ids[at] ?? source;
    edges.push({ id: `e${edges.length}`, source, target, condition });
  };
  nodes.forEach(({ id, role }, index) => {
    const ahead = (): number => (chance(0.75) ? index + 1 + below(3) : below(ids.length));
    if (role === 'critic' && chance(0.7)) {
      link(id, 'rework', below(ids.length));
      if (chance(0.8)) link(id, 'approve', below(ids.length));
    }
    for (let count = below(4); count > 0; count -= 1) {
      const at = ahead();
      if (at < ids.length) link(id, null, at);
    }
  });
  return withFullNames(graphWith(nodes, edges), plainName);
}

/** A panel, rank, judge or jury. */
function deliberating({ below, chance }: Draws): Partial<GraphNode> & Pick<GraphNode, 'role'> {
  const members = Array.from({ length: 2 + below(3) }, (_, index) => ({ id: `m${index}`, label: `M ${index}` }));
  const waits = { graceMs: below(2) * 1000, ...(chance(0.5) && { quorum: 1 + below(members.length) }) };
  const role = (['panel', 'panel', 'rank', 'judge', 'critic'] as const)[below(5)] ?? 'panel';
  if (role === 'judge') return { role };
  if (role === 'rank') return { role, ...(chance(0.3) && { members }), ...(chance(0.5) && { keep: 1 + below(3) }) };
  return { role, members, ...waits, ...(role === 'critic' && { aggregate: 'mean' }) };
}

/** The output of a step. Only the step's number determines it, so the order in which steps end changes nothing. */
export function outputOf(run: RunState, node: string, step: number): NodeOutput {
  const { role } = run.plan.node(node);
  const at = run.progress.frontier.find((each) => each.step === step);
  if (role === 'panel') return { answer: `Answer ${step} by ${at?.seat?.member}` };
  if (role === 'rank') return { ranking: rankingOf(at?.orderShown.length ?? 0, step), comment: `Comment ${step}` };
  if (role === 'judge') return { analysis: { ...NO_ANALYSIS, consensus: [`Response A, says step ${step}`] } };
  return role === 'critic'
    ? { score: (step * 7) % 11, feedback: `Feedback ${step}` }
    : { draft: `Draft ${step} by ${node}` };
}

const NO_ANALYSIS = { contradictions: [], partial_coverage: [], unique_insights: [], blind_spots: [] };

/** The letters shown, rotated by the number of the step. */
function rankingOf(shown: number, step: number): string[] {
  return Array.from({ length: shown }, (_, index) => 'ABCDEFGH'.charAt((index + step) % shown));
}

/** One random command on an unfinished run. */
function anotherEvent(story: Story, draws: Draws): Story {
  const { run } = story;
  if (run.phase.status === 'pending') return story.when({ type: 'ClaimRun', reason: 'started' });
  if (draws.chance(0.01)) return story.when({ type: 'CancelRun', actor: null });
  if (run.phase.status === 'paused') return decided(story, draws);
  if (run.ownership.owner === null || draws.chance(0.05)) {
    return story.when({ type: 'ClaimRun', reason: run.ownership.owner === null ? 'handover' : 'recovered' }, 'two');
  }
  if (draws.chance(0.05)) return story.when({ type: 'ReleaseRun' });
  if (draws.chance(0.1) && openPanels(run).some(({ until }) => until !== null)) {
    return story.when({ type: 'ClosePanels', until: '2026-01-01T01:00:00.000Z' }, 'one');
  }
  return anotherReport(story, draws);
}

/** A random report of an active attempt. */
function anotherReport(story: Story, draws: Draws): Story {
  const { run } = story;
  const active = activeNodes(run);
  const at = attemptOf(run, active[draws.below(active.length)] ?? '');
  if (draws.chance(0.2)) return story.when(usedTool(at.node, [page(draws.below(9))]));
  if (draws.chance(0.1)) return story.when(failed(at, draws.chance(0.9) ? 5 : null));
  return story.when(completed(at, outputOf(run, at.node, at.step)));
}

/** An override of the state, of single branches, or of both. Without one, or if it is refused, approves. */
function decided(story: Story, draws: Draws): Story {
  const { chance, below } = draws;
  const state = chance(0.5) ? {} : randomState(draws);
  const branches = (pauseOf(story.run)?.nextNodes ?? []).flatMap((node) =>
    chance(0.3) ? [{ node, current_draft: chance(0.2) ? null : `Mine ${below(9)} for ${node}` }] : [],
  );
  const override = { ...state, ...(branches.length > 0 && { branches }) };
  if (Object.keys(override).length === 0) return story.whenApproved();
  try {
    return story.whenModified(override);
  } catch (error) {
    if (!(error instanceof OverrideRefused)) throw error;
    return story.whenApproved();
  }
}

function page(number: number) {
  return { document: 'd'.repeat(64), page: number, chunk: number, score: 0.5 };
}

function randomState({ below, chance }: Draws): StateOverride {
  return {
    ...(chance(0.3) ? { input_topic: 'Another' } : {}),
    ...(chance(0.3) ? { current_draft: chance(0.2) ? null : `Mine ${below(9)}` } : {}),
    ...(chance(0.3) ? { critic_score: chance(0.2) ? null : below(11) } : {}),
    ...(chance(0.3) ? { iteration_count: below(20) } : {}),
    ...(chance(0.3) ? { feedback_history: ['Mine', 'too'] } : {}),
  };
}

/** A complete random history. At every event, the harness compares the fold with the chart, on frozen states. */
export function randomStory(seed: number): Story {
  const draws = drawsOf(seed);
  let story = given(randomGraph(draws), { godMode: draws.chance(0.3), pending: draws.chance(0.2) });
  for (let events = 0; events < 400 && !isFinished(story.run); events += 1) story = anotherEvent(story, draws);
  return story;
}

/** Adds the seed to the error of a failure. */
export function named<T>(seed: number, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
    throw error;
  }
}
