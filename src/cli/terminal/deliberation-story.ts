/** The deliberation of a run in the order in which it happened: the entries of its record, ordered by the run's events. */
import type {
  DeliberationRecord,
  JudgedAnalysis,
  JuryRecord,
  MemberAnswer,
  NodeOutput,
  NodeStartedData,
  PanelClosedData,
  RankingResult,
  ReviewerRanking,
} from '../../generated/schemas.js';
import type { RunEvent } from '../../run/events.js';

/**
 * One execution of a panel, rank, judge or jury. All executions before a fork together are one, because the fork's events do
 * not separate them, and all that are under way are one.
 */
export interface Execution {
  readonly answers: readonly MemberAnswer[];
  readonly rankings: readonly ReviewerRanking[];
  readonly results: readonly RankingResult[];
  readonly analyses: readonly JudgedAnalysis[];
  readonly juries: readonly JuryRecord[];
  /** How it closed, or null if the run's events do not say. */
  readonly closed: PanelClosedData | null;
}

/** Why members have failed, by the number of their panel and their id. */
export type Failures = ReadonlyMap<string, string>;

export interface DeliberationStory {
  readonly executions: readonly Execution[];
  readonly failures: Failures;
  /** The label of a node. */
  readonly nodeLabel: (node: string) => string;
  /** The label of a member, with its id if others have the same label. */
  readonly memberLabel: (member: string) => string;
}

export function failureKey(panelStep: number, member: string): string {
  return `${panelStep} ${member}`;
}

type Lists = Omit<Execution, 'closed'>;

/** @param events of the run, in order, from the first */
export function storyOf(record: DeliberationRecord, events: readonly RunEvent[]): DeliberationStory {
  const failures = new Map<string, string>();
  const ends: End[] = [];
  const open = new Map<number, Counts & { readonly node: string }>();
  for (const event of events) {
    if (event.type === 'PanelClosed') {
      ends.push({ node: event.data.node, closed: event.data, counts: countsOf(event.data) });
      open.delete(event.data.panelStep);
    } else if (event.type === 'NodeCompleted' && 'analysis' in event.data.output) {
      ends.push({ node: event.data.node, closed: null, counts: { ...NOTHING, analyses: 1 } });
    } else if (event.type === 'NodeFailed' && event.data.final === true && event.data.member !== undefined) {
      failures.set(failureKey(event.data.panelStep ?? 0, event.data.member), event.data.message);
      addOpen(open, event.data, { answers: 1 });
    } else if (event.type === 'NodeCompleted' && event.data.member !== undefined) {
      addOpen(open, event.data, entryOf(event.data.output));
    }
  }
  for (const data of cutOffIn(events)) addOpen(open, data, { answers: 1 });
  const left = new Queues(record);
  const underWay = new Map([...open.values()].map(({ node, ...counts }) => [node, counts]));
  const earlier: Execution = { ...left.takeBefore(ends, underWay), closed: null };
  const own = ends.map(({ node, closed, counts }): Execution => ({ ...left.take(node, counts), closed }));
  return { executions: [earlier, ...own, { ...left.rest(), closed: null }], failures, ...labelsIn(events) };
}

/** The last attempts of a panel's members that had not answered when the run ended, which a record shows as discarded. */
function cutOffIn(events: readonly RunEvent[]): readonly NodeStartedData[] {
  const [first] = events;
  if (first?.type !== 'RunRequested' || !events.some(({ type }) => ENDS.has(type))) return [];
  const panels = new Set(first.data.graph.nodes.filter(({ role }) => role === 'panel').map(({ id }) => id));
  const atWork = new Map<number, NodeStartedData>();
  const ended = new Set<number>();
  const closed = new Set<number | undefined>();
  for (const { type, data } of events) {
    if (type === 'NodeStarted' && panels.has(data.node)) atWork.set(data.step, data);
    if (type === 'NodeCompleted' || (type === 'NodeFailed' && data.final === true)) ended.add(data.step);
    if (type === 'PanelClosed') closed.add(data.panelStep);
  }
  return [...atWork.values()].filter(({ step, panelStep }) => !ended.has(step) && !closed.has(panelStep));
}

const ENDS: ReadonlySet<string> = new Set(['RunCompleted', 'RunFailed']);

function entryOf(output: NodeOutput): Partial<Counts> {
  if ('answer' in output) return { answers: 1 };
  return 'ranking' in output ? { rankings: 1 } : { juries: 1 };
}

/** Counts an entry of a panel, rank or jury under way. The scores of a jury are one entry. */
function addOpen(
  open: Map<number, Counts & { readonly node: string }>,
  { node, panelStep = 0 }: { readonly node: string; readonly panelStep?: number },
  { answers = 0, rankings = 0, juries = 0 }: Partial<Counts>,
): void {
  const before = open.get(panelStep) ?? { node, ...NOTHING };
  open.set(panelStep, {
    ...before,
    answers: before.answers + answers,
    rankings: before.rankings + rankings,
    juries: Math.max(before.juries, juries),
  });
}

interface End {
  readonly node: string;
  readonly closed: PanelClosedData | null;
  readonly counts: Counts;
}

/** How many entries of each list an execution has. */
type Counts = { readonly [Name in keyof Lists]: number };

const NOTHING: Counts = { answers: 0, rankings: 0, results: 0, analyses: 0, juries: 0 };

function countsOf({ answered, failed, discarded, result }: PanelClosedData): Counts {
  if (result === null) return { ...NOTHING, answers: answered.length + failed.length + discarded.length };
  return 'points' in result ? { ...NOTHING, rankings: answered.length, results: 1 } : { ...NOTHING, juries: 1 };
}

/** The entries of a record that are not shown yet: those of a node in the order of its executions. */
class Queues {
  #lists: Lists;

  constructor({ answers, rankings, results, analyses, juries }: DeliberationRecord) {
    this.#lists = { answers, rankings, results, analyses, juries };
  }

  /** Takes the entries that are older than these executions. Those under way stay. */
  takeBefore(ends: readonly End[], open: ReadonlyMap<string, Counts>): Lists {
    const kept = (name: keyof Lists, node: string): number =>
      sum(ends.filter((end) => end.node === node).map(({ counts }) => counts[name])) + (open.get(node)?.[name] ?? 0);
    return this.#split((name, node, index, total) => index < total - kept(name, node));
  }

  /** Takes the next entries of a node. */
  take(node: string, counts: Counts): Lists {
    return this.#split((name, of, index) => of === node && index < counts[name]);
  }

  rest(): Lists {
    return this.#lists;
  }

  /** Takes entries out of the lists. @param isTaken gets the index of an entry among those of its node, and their number */
  #split(isTaken: (name: keyof Lists, node: string, index: number, total: number) => boolean): Lists {
    const part = <Entry extends { readonly node: string }>(
      name: keyof Lists,
      list: readonly Entry[],
    ): readonly [readonly Entry[], readonly Entry[]] => {
      const seen = new Map<string, number>();
      const taken = list.map(({ node }) => {
        const index = seen.get(node) ?? 0;
        seen.set(node, index + 1);
        return isTaken(name, node, index, list.filter((each) => each.node === node).length);
      });
      return [list.filter((_, at) => taken[at] === true), list.filter((_, at) => taken[at] !== true)];
    };
    const { answers, rankings, results, analyses, juries } = this.#lists;
    const [answersOut, answersLeft] = part('answers', answers);
    const [rankingsOut, rankingsLeft] = part('rankings', rankings);
    const [resultsOut, resultsLeft] = part('results', results);
    const [analysesOut, analysesLeft] = part('analyses', analyses);
    const [juriesOut, juriesLeft] = part('juries', juries);
    this.#lists = {
      ...{ answers: answersLeft, rankings: rankingsLeft, results: resultsLeft },
      ...{ analyses: analysesLeft, juries: juriesLeft },
    };
    return {
      ...{ answers: answersOut, rankings: rankingsOut, results: resultsOut },
      ...{ analyses: analysesOut, juries: juriesOut },
    };
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}

/** The labels in the graph of the run; an id without one is shown itself. */
function labelsIn(events: readonly RunEvent[]): Pick<DeliberationStory, 'nodeLabel' | 'memberLabel'> {
  const [first] = events;
  const nodes = first?.type === 'RunRequested' ? first.data.graph.nodes : [];
  const labels = new Map(nodes.map(({ id, label }) => [id, label]));
  const members = new Map(nodes.flatMap(({ members: of = [] }) => of.map(({ id, label }) => [id, label] as const)));
  return {
    nodeLabel: (node) => labels.get(node) ?? node,
    memberLabel(member) {
      const label = members.get(member) ?? member;
      const isShared = [...members].some(([id, other]) => id !== member && other === label);
      return isShared ? `${label} (${member})` : label;
    },
  };
}
