/** The progress of a run, computed from its events: the running nodes, and the messages about fallbacks and waits. */
import type { RunEvent } from '../../client/run-events.js';
import { isTerminal } from '../../client/run-events.js';
import { budgetEndOf } from '../../run/budget/end.js';
import { attemptFailureText, nextActionText } from '../../run/failure-texts.js';
import { usageText } from '../terminal/usage-text.js';
import type { RunProgress } from './driver.js';

/** The progress after each event that changes it. */
export async function* progressOf(events: AsyncIterable<RunEvent>): AsyncGenerator<RunProgress> {
  const noticesOf = fallbackNotices();
  const runsOf = childRows();
  const line: Line = { active: new Set(), iteration: null, score: null };
  let lastPause: RunEvent | null = null;
  for await (const event of events) {
    const isPaused = event.type === 'RunPaused';
    if (isPaused) lastPause = event;
    const runs = runsOf(event);
    const notices = [...noticesOf(event), ...runs.ended];
    if (!changes(line, event) && notices.length === 0) continue;
    const { active, iteration, score } = line;
    yield {
      nodes: [...active],
      runs: runs.under,
      iteration,
      score,
      isPaused,
      notices,
      budgetEnd: budgetEndOf(event, lastPause),
    };
  }
}

interface Line {
  readonly active: Set<string>;
  iteration: number | null;
  score: number | null;
}

/** Changes the line by an event. @returns false if there is nothing new to show */
function changes(line: Line, event: RunEvent): boolean {
  const { active } = line;
  const { type, data } = event;
  if (type === 'NodeStarted') {
    active.add(data.node);
    const iteration = data.iteration || null;
    // The draft of another iteration has no score yet.
    if (iteration !== line.iteration) line.score = null;
    line.iteration = iteration;
    return true;
  }
  if (type === 'NodeCompleted' || type === 'PanelClosed') {
    if (isOfMember(event)) return false;
    active.delete(data.node);
    line.score = scoreIn(event) ?? line.score;
    // The next event starts the next node, in the same append.
    return active.size > 0;
  }
  // The number of ended runs has changed.
  if (type === 'ChildStarted' || type === 'ChildEnded') return true;
  if (type !== 'RunPaused' && !isTerminal(event)) return false;
  active.clear();
  return true;
}

/** The runs that councils start: how many have ended by node, and a row for one that an event has ended. */
function childRows(): (event: RunEvent) => Readonly<{ under: ReadonlyMap<string, string>; ended: readonly string[] }> {
  const children = new Map<string, { readonly title: string; readonly items: number }>();
  const ended = new Map<number, number>();
  const under = new Map<string, string>();
  return ({ type, data }) => {
    if (type === 'ChildStarted') {
      const { step, node, index, child, title, items = 1 } = data;
      children.set(child, { title: title === undefined ? `run ${child}` : `${index} "${cut(title)}"`, items });
      under.set(node, `${ended.get(step) ?? 0} of ${items} ended`);
    }
    if (type !== 'ChildEnded') return { under, ended: [] };
    const { step, node, index, child, status, usage, error } = data;
    const { title, items } = children.get(child) ?? { title: `run ${index}`, items: 1 };
    ended.set(step, (ended.get(step) ?? 0) + 1);
    under.set(node, `${ended.get(step)} of ${items} ended`);
    return {
      under,
      ended: [`  ${node}: ${title} ${status}, ${error ?? usageText({ ...usage, costUsd: usage.costUsd ?? null })}`],
    };
  };
}

/** Most characters of a title in a row. */
const TITLE_CHARS = 60;

function cut(title: string): string {
  const characters = [...title];
  return characters.length > TITLE_CHARS ? `${characters.slice(0, TITLE_CHARS - 1).join('')}…` : title;
}

/** What to tell of an event: that a node asks a fallback or waits for a server, and later which model has answered. */
function fallbackNotices(): (event: RunEvent) => readonly string[] {
  /** Steps that ask a fallback. */
  const asking = new Set<number>();
  return ({ type, data }) => {
    if (type === 'NodeFailed') {
      const { step, kind, fallbackTo, outageMs } = data;
      if (fallbackTo === undefined && outageMs === undefined) return [];
      if (fallbackTo !== undefined) asking.add(step);
      const what = attemptFailureText(kind)?.what ?? `It failed (${kind}).`;
      return [`${nameOf(data)}, ${data.model ?? 'its model'}: ${what} ${nextActionText(data)}`];
    }
    if (type !== 'NodeCompleted' || !asking.delete(data.step)) return [];
    return [`${nameOf(data)}, ${data.model ?? 'its fallback'}: The fallback answered.`];
  };
}

function nameOf({ node, member }: { readonly node: string; readonly member?: string }): string {
  return member === undefined ? node : `${member} of ${node}`;
}

type Completed = Extract<RunEvent, { type: 'NodeCompleted' | 'PanelClosed' }>;

/** Whether a member has completed: its node is active until the panel closes. */
function isOfMember({ type, data }: Completed): boolean {
  return type === 'NodeCompleted' && data.member !== undefined;
}

/** The score of a critic or jury, or null if it is none. */
function scoreIn({ type, data }: Completed): number | null {
  const result = type === 'PanelClosed' ? data.result : data.output;
  return result !== null && 'score' in result ? result.score : null;
}
