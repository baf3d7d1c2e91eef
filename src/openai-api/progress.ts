/** The progress of a run in short lines, for clients that show it while they wait. */
import type { RunFacts } from '../generated/schemas.js';
import { councilProgressText } from '../run/children/children.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { labelOf } from '../run/state.js';

/** A line about an event, or null if clients do not need it. It is one line, without control characters. */
export function progressLine({ type, data }: RunEvent, run: RunState): string | null {
  switch (type) {
    case 'RunStarted':
      return `Run ${run.runId} has started`;
    case 'NodeStarted':
      return `${nameOf(run, data)}: at work${data.attempt > 1 ? `, attempt ${data.attempt}` : ''}`;
    case 'ChildEnded': {
      const at = run.progress.frontier.find(({ step }) => step === data.step);
      return at === undefined ? null : `${nameOf(run, data)}: ${councilProgressText(at)}`;
    }
    case 'NodeCompleted':
      return `${nameOf(run, data)}: ${outcomeOf(data.output)}`;
    case 'NodeFailed':
      return `${nameOf(run, data)}: the attempt failed${data.fallbackTo === undefined ? '' : '; another model takes over'}`;
    case 'PanelClosed': {
      const { result } = data;
      return result !== null && 'score' in result ? `${nameOf(run, { node: data.node })}: score ${result.score}` : null;
    }
    case 'RunPaused':
      return pauseLine(run, data);
    case 'RunResumed':
      return 'The run goes on';
    default:
      return null;
  }
}

function pauseLine(run: RunState, { nextNodes, reason }: RunFacts['RunPaused']): string {
  const names = nextNodes.map((node) => nameOf(run, { node })).join(', ');
  const wanted = reason === 'budget' ? 'a larger budget' : 'a decision';
  return `Paused before ${names}: waits for ${wanted} at /api/councils/run/${run.runId}/approve`;
}

function nameOf({ plan }: RunState, { node, member }: { readonly node: string; readonly member?: string }): string {
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
