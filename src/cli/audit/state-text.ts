/** A folded run for a reader: a line a field, then its texts. */
import type { FoldedRun } from '../../generated/schemas.js';
import { inOneLine, printable } from '../printable.js';
import type { Paint, Style } from './paint.js';

const NAME = 14;

const STATUS_STYLES: Readonly<Record<FoldedRun['status'], Style>> = {
  pending: 'dim',
  running: 'cyan',
  paused: 'yellow',
  completed: 'green',
  failed: 'red',
};

export function stateText(run: FoldedRun, paint: Paint): string {
  const field = (name: string, value: string | number | null, style?: Style): string => {
    const text = value === null ? '-' : inOneLine(String(value));
    return `${paint('bold', name.padEnd(NAME))}${style === undefined ? text : paint(style, text)}\n`;
  };
  const isDraftFinal = run.final_draft !== null && run.final_draft === run.current_draft;
  return [
    field('run', `${run.run_id} after event ${run.seq}`),
    field('status', run.status, STATUS_STYLES[run.status]),
    ...(run.error === null ? [] : [field('error', run.error, 'red')]),
    field('topic', run.input_topic),
    field('active node', run.active_node),
    ...(run.paused ? [field('waits before', run.next_nodes.join(', '), 'yellow')] : []),
    field('iterations', run.iteration_count),
    field('score', run.critic_score),
    field('route', run.route_decision),
    ...run.feedback_history.map((feedback, index) => field(`feedback ${index + 1}`, feedback)),
    text(isDraftFinal ? 'final draft' : 'draft', run.current_draft, paint),
    ...(isDraftFinal ? [] : [text('final draft', run.final_draft, paint)]),
  ].join('');
}

function text(name: string, content: string | null, paint: Paint): string {
  if (content === null) return '';
  return `${paint('bold', `${name}:`)}\n${printable(content).replaceAll(/^/gm, '  ')}\n`;
}
