/** The progress of a run in short lines, for clients that show it while they wait. */
import { isKeyOf } from '../system/element.js';
import type { RunFacts } from '../generated/schemas.js';
import type { RunEvent, RunFactType } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { labelOf } from '../run/state.js';

type Lines = { readonly [T in RunFactType]?: (data: RunFacts[T], run: RunState) => string | null };

const LINES: Lines = {
  RunStarted: (_, run) => `Run ${run.runId} has started`,
  NodeStarted: ({ node, member, attempt }, run) =>
    `${nameOf(run, node, member)}: at work${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  NodeCompleted: ({ node, member, output }, run) => `${nameOf(run, node, member)}: ${outcomeOf(output)}`,
  NodeFailed: ({ node, member, fallbackTo }, run) =>
    `${nameOf(run, node, member)}: the attempt failed${fallbackTo === undefined ? '' : '; another model takes over'}`,
  PanelClosed: ({ node, result }, run) =>
    result !== null && 'score' in result ? `${nameOf(run, node)}: score ${result.score}` : null,
  RunPaused: ({ nextNodes, reason }, run) => {
    const names = nextNodes.map((node) => nameOf(run, node)).join(', ');
    const wanted = reason === 'budget' ? 'a larger budget' : 'a decision';
    return `Paused before ${names}: waits for ${wanted} at /api/councils/run/${run.runId}/approve`;
  },
  RunResumed: () => 'The run goes on',
};

/** A line about an event, or null if clients do not need it. It is one line, without control characters. */
export function progressLine({ type, data }: RunEvent, run: RunState): string | null {
  if (!isKeyOf(LINES, type)) return null;
  const line: ((data: never, run: RunState) => string | null) | undefined = LINES[type];
  return line?.(data as never, run) ?? null;
}

function nameOf({ plan }: RunState, node: string, member?: string): string {
  const label = labelOf(plan.graph, node);
  if (member === undefined) return label;
  const found = plan.hasNode(node) ? plan.node(node).members?.find(({ id }) => id === member) : undefined;
  return `${label}, ${found?.label ?? member}`;
}

function outcomeOf(output: RunFacts['NodeCompleted']['output']): string {
  if ('score' in output) return `score ${output.score}`;
  if ('draft' in output) return 'draft written';
  if ('ranking' in output) return 'answers ranked';
  return 'answered';
}
