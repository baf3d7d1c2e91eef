/** The progress of a run, computed from its events: the running nodes, and the messages about fallbacks and waits. */
import type { RunEvent } from '../../client/run-events.js';
import { isTerminal } from '../../client/run-events.js';
import { budgetEndOf } from '../../run/budget/end.js';
import { attemptFailureText, nextActionText } from '../../run/failure-texts.js';
import type { RunProgress } from './driver.js';

/** The progress after each event that changes it. */
export async function* progressOf(events: AsyncIterable<RunEvent>): AsyncGenerator<RunProgress> {
  const noticesOf = fallbackNotices();
  const line: Line = { active: new Set(), iteration: null, score: null };
  let lastPause: RunEvent | null = null;
  for await (const event of events) {
    const isPaused = event.type === 'RunPaused';
    if (isPaused) lastPause = event;
    const notices = noticesOf(event);
    if (!changes(line, event) && notices.length === 0) continue;
    const { active, iteration, score } = line;
    yield { nodes: [...active], iteration, score, isPaused, notices, budgetEnd: budgetEndOf(event, lastPause) };
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
  if (type !== 'RunPaused' && !isTerminal(event)) return false;
  active.clear();
  return true;
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
