/** An event in one line: number, time, type, node, and a summary of its data. */
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { RunFactType } from '../../run/events.js';
import { attemptFailureText } from '../../run/failure-texts.js';
import { isKeyOf } from '../../system/element.js';
import { inOneLine } from './printer.js';
import type { Styler, Style } from './printer.js';

/** Columns of seq, type and node; a longer value moves the rest to the right. */
const [SEQ, TYPE, NODE] = [4, 13, 14];
/** Characters of a summary, and of a text within it. */
const [SUMMARY, EXCERPT] = [140, 60];

/** Styles by event type; a type without a style is printed plain. */
const STYLES: Readonly<Partial<Record<RunFactType, Style>>> = {
  RunCompleted: 'green',
  NodeCompleted: 'green',
  RunFailed: 'red',
  NodeFailed: 'red',
  RunPaused: 'yellow',
  VoteCast: 'yellow',
  PauseEscalated: 'yellow',
  GateDecided: 'yellow',
};

/** Untrusted data: a later version of the service may have written the record, or someone may have forged it. */
type Data = Readonly<Record<string, unknown>>;

/** @param columns of the terminal, or null for no limit */
export function eventLine(event: ExportedEvent, style: Styler, columns: number | null): string {
  const data: Data = { ...event.data };
  const at = inOneLine(event.at);
  const seq = String(event.seq).padStart(SEQ);
  const type = inOneLine(event.type).padEnd(TYPE);
  const node = cut(inOneLine(typeof data['node'] === 'string' ? data['node'] : ''), 40).padEnd(NODE);
  const head = `${seq}  ${at}  ${type}  ${node}  `;
  const width = columns === null ? SUMMARY : Math.min(SUMMARY, Math.max(20, columns - 1 - head.length));
  const summary = cut(inOneLine((of(SUMMARIES, event.type) ?? JSON.stringify)(data)), width);
  const typeStyle = of(STYLES, event.type);
  const styledType = typeStyle === undefined ? type : style(typeStyle, type);
  return `${style('dim', `${seq}  ${at}`)}  ${styledType}  ${style('cyan', node)}  ${summary}`.trimEnd();
}

/** Summaries by event type. The data of a type of a later version is printed as JSON. */
const SUMMARIES: Readonly<Record<RunFactType, (data: Data) => string>> = {
  RunRequested: ({ inputTopic, blueprintName, godMode, parent, actor }) => {
    const council = blueprintName === null ? 'built-in council' : `council ${quoted(blueprintName)}`;
    const { runId, at } = recordIn(parent);
    const origin = runId === undefined ? '' : `, forked from ${textOf(runId)} at ${textOf(at)}`;
    return `${quoted(inputTopic)}, ${council}${godMode === true ? ', God Mode' : ''}${by(actor)}${origin}`;
  },
  RunClaimed: ({ reason, instanceId, epoch }) => `${textOf(reason)}, by ${textOf(instanceId)}, epoch ${textOf(epoch)}`,
  RunReleased: ({ reason, epoch }) => `${textOf(reason)}, epoch ${textOf(epoch)}`,
  RunStarted: ({ epoch }) => `epoch ${textOf(epoch)}`,
  RunResumed: ({ nextNodes }) => `with ${textOf(nextNodes)}`,
  NodeStarted: ({ step, attempt, model }) => `step ${textOf(step)}${again(attempt)}, ${textOf(model)}`,
  CallReserved: ({ step, attempt, reserved }) =>
    `step ${textOf(step)}${again(attempt)}, ${textOf(recordIn(reserved)['tokens'])} tokens for its next call`,
  ToolCalled: ({ tool, arguments: given, hits, error, durationMs }) => {
    const found = Array.isArray(hits) ? `${hits.length} hits` : '';
    return `${textOf(tool)} ${excerpt(given)}: ${error === null ? found : textOf(error)} in ${textOf(durationMs)} ms`;
  },
  NodeCompleted: ({ output, route }) => {
    const { draft, score, feedback } = recordIn(output);
    const { next } = recordIn(route);
    const critique = score === undefined ? excerpt(output) : `score ${textOf(score)} ${quoted(feedback)}`;
    const made = typeof draft === 'string' ? draftSummary(draft) : critique;
    return `${textOf(next) === '' ? '' : `to ${textOf(next)}: `}${made}`;
  },
  NodeFailed: ({ kind, message, attempt, retryable }) => {
    const advice = attemptFailureText(textOf(kind))?.advice;
    const outcome = `${textOf(kind)}${again(attempt)}${retryable === true ? '' : ', not retried'}`;
    return `${outcome}: ${advice === undefined ? '' : `${advice} `}${textOf(message)}`;
  },
  RunPaused: ({ nextNodes, gate, reason }) =>
    `pause ${textOf(gate)}${reason === 'budget' ? ' for the budget' : ''}, before ${textOf(nextNodes)}`,
  VoteCast: ({ action, gate, actor, comment }) =>
    `${textOf(action)} of pause ${textOf(gate)}, one vote${by(actor)}${commentText(comment)}`,
  PauseEscalated: ({ gate, to }) => `pause ${textOf(gate)}, to ${textOf(to)}`,
  GateDecided: ({ action, gate, modifiedState, actor, comment, by: how }) => {
    const changed = Object.keys(recordIn(modifiedState));
    const sets = changed.length === 0 ? '' : `, sets ${changed.join(', ')}`;
    return `${textOf(action)} of pause ${textOf(gate)}${by(how === 'deadline' ? 'its deadline' : actor)}${sets}${commentText(comment)}`;
  },
  RunCompleted: ({ finalDraft, criticScore, iterationCount }) => {
    const draft = typeof finalDraft === 'string' ? draftSummary(finalDraft) : 'no draft';
    return `score ${textOf(criticScore)}, ${textOf(iterationCount)} iterations, ${draft}`;
  },
  RunFailed: ({ kind, error, actor }) => `${textOf(kind)}${by(actor)}: ${textOf(error)}`,
};

function of<T>(table: Readonly<Partial<Record<RunFactType, T>>>, type: string): T | undefined {
  return isKeyOf(table, type) ? table[type] : undefined;
}

function by(actor: unknown): string {
  return typeof actor === 'string' ? ` by ${excerpt(actor)}` : '';
}

function commentText(comment: unknown): string {
  return typeof comment === 'string' ? `: ${quoted(comment)}` : '';
}

function draftSummary(draft: string): string {
  return `draft of ${[...draft].length} characters ${quoted(draft)}`;
}

function again(attempt: unknown): string {
  return attempt === 1 ? '' : `, attempt ${textOf(attempt)}`;
}

function recordIn(value: unknown): Data {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function quoted(value: unknown): string {
  return `"${excerpt(value)}"`;
}

function excerpt(value: unknown): string {
  return cut(inOneLine(textOf(value).slice(0, 4 * EXCERPT)), EXCERPT);
}

function cut(text: string, most: number): string {
  const all = [...text];
  return all.length <= most ? text : `${all.slice(0, most - 1).join('')}…`;
}
