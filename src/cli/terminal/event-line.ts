/** An event in one line: number, time, type, node, and a summary of its data. */
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { RunFactType } from '../../run/events.js';
import { BUDGET_ENDS, budgetEndOf } from '../../run/budget/end.js';
import { spendingText } from '../../run/budget/budget-text.js';
import { limitsText, unpricedModels } from '../../run/cost-text.js';
import { attemptFailureText, nextActionText } from '../../run/failure-texts.js';
import { utf8Bytes } from '../../graph/limits.js';
import { fieldOf, listOf, recordOf } from '../../system/untrusted.js';
import { isKeyOf } from '../../system/element.js';
import { usageText } from './usage-text.js';
import { inOneLine } from './printer.js';
import type { Styler, Style } from './printer.js';

/** Columns of seq, type and node; a longer value moves the rest to the right. */
const [SEQ, TYPE, NODE] = [4, 13, 14];
/** Characters of a summary, and of a text within it, on a terminal. */
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
  PanelClosed: 'green',
};

/** Untrusted data: a later version of the service may have written the record, or someone may have forged it. */
type Data = Readonly<Record<string, unknown>>;

/**
 * Makes the line of each event of a run, given in their order.
 *
 * @param columns of the terminal, or null for whole texts
 * @param depth how many runs the run is below the first
 */
export function eventLines(style: Styler, columns: number | null, depth = 0): (event: ExportedEvent) => string {
  let lastPause: ExportedEvent | null = null;
  /** The titles of the runs that councils have started. */
  const titles = new Map<unknown, unknown>();
  return (event) => {
    if (event.type === 'ChildStarted') titles.set(fieldOf(event.data, 'child'), fieldOf(event.data, 'title'));
    if (event.type === 'RunPaused') lastPause = event;
    const isRejected = budgetEndOf(event, lastPause) === 'rejected';
    const error = isRejected ? { error: BUDGET_ENDS.rejected } : {};
    const title = event.type === 'ChildEnded' ? titles.get(fieldOf(event.data, 'child')) : undefined;
    const data = { ...event.data, ...error, ...(title !== undefined && { title }), ...(depth > 0 && { depth }) };
    return eventLine({ ...event, data }, style, columns);
  };
}

/** @param columns of the terminal, or null for whole texts */
export function eventLine(event: ExportedEvent, style: Styler, columns: number | null): string {
  const data: Data = { ...event.data };
  const at = inOneLine(event.at);
  const seq = String(event.seq).padStart(SEQ);
  const type = inOneLine(event.type).padEnd(TYPE);
  const node = cut(inOneLine(typeof data['node'] === 'string' ? data['node'] : ''), 40).padEnd(NODE);
  const head = `${seq}  ${at}  ${type}  ${node}  `;
  const isWhole = columns === null;
  const width = isWhole ? Infinity : Math.min(SUMMARY, Math.max(20, columns - 1 - head.length));
  const summaryOf = of(SUMMARIES, event.type) ?? ((unknown: Data) => JSON.stringify(unknown));
  const summary = cut(inOneLine(summaryOf(data, isWhole ? Infinity : EXCERPT)), width);
  const typeStyle = of(STYLES, event.type);
  const styledType = typeStyle === undefined ? type : style(typeStyle, type);
  return `${style('dim', `${seq}  ${at}`)}  ${styledType}  ${style('cyan', node)}  ${summary}`.trimEnd();
}

/** The item of a council's run, as a row under the council, deeper below a run that a council has started. */
function itemText({ index, title, depth }: Data, most: number): string {
  return `└${'──'.repeat(typeof depth === 'number' ? depth : 0)} ${textOf(index)}${title === undefined ? '' : ` ${quoted(title, most)}`}, `;
}

/** Summaries by event type. The data of a type of a later version is printed as JSON. */
const SUMMARIES: Readonly<Record<RunFactType, (data: Data, most: number) => string>> = {
  RunRequested: ({ inputTopic, material, blueprintName, godMode, parent, actor, budget }, most) => {
    const council = blueprintName === null ? 'built-in council' : `council ${quoted(blueprintName, most)}`;
    const { runId, at } = recordOf(parent);
    const origin = runId === undefined ? '' : `, forked from ${textOf(runId)} at ${textOf(at)}`;
    const limits = budget === undefined ? '' : `, ${budgetOf(budget)}, then ${textOf(recordOf(budget)['onExceeded'])}`;
    const mode = godMode === true ? ', God Mode' : '';
    const size = typeof material === 'string' ? `, material of ${utf8Bytes(material)} bytes` : '';
    return `${quoted(inputTopic, most)}${size}, ${council}${mode}${limits}${by(actor, most)}${origin}`;
  },
  RunClaimed: ({ reason, instanceId, epoch }) => `${textOf(reason)}, by ${textOf(instanceId)}, epoch ${textOf(epoch)}`,
  RunReleased: ({ reason, epoch }) => `${textOf(reason)}, epoch ${textOf(epoch)}`,
  RunStarted: ({ epoch }) => `epoch ${textOf(epoch)}`,
  RunResumed: ({ nextNodes }) => `with ${textOf(nextNodes)}`,
  NodeStarted: ({ member, step, attempt, model }, most) =>
    `${memberText(member, most)}step ${textOf(step)}${again(attempt)}${model === '' ? '' : `, ${textOf(model)}`}`,
  CallReserved: ({ step, attempt, reserved }) =>
    `step ${textOf(step)}${again(attempt)}, ${textOf(recordOf(reserved)['tokens'])} tokens for its next call`,
  ToolCalled: ({ tool, arguments: given, hits, error, durationMs }, most) => {
    const found = Array.isArray(hits) ? `${hits.length} hits` : '';
    return `${textOf(tool)} ${excerpt(given, most)}: ${error === null ? found : textOf(error)} in ${textOf(durationMs)} ms`;
  },
  ChildStarted: ({ child, ...item }, most) => `${itemText(item, most)}run ${textOf(child)}`,
  ChildEnded: ({ status, usage, output, error, ...item }, most) => {
    const result = status === 'completed' ? draftSummary(textOf(output), most) : textOf(error);
    return `${itemText(item, most)}${textOf(status)}, ${totalsText(usage)}: ${result}`;
  },
  NodeCompleted: ({ member, output, route, usage, costUsd, model }, most) => {
    // A council makes no calls of its own.
    const isCouncil = model === undefined && costUsd === undefined;
    const cost = [...routeOf(route), ...(isCouncil ? [] : [costOf(usage, { costUsd, model })])].join(', ');
    return `${memberText(member, most)}${cost === '' ? '' : `${cost}: `}${outputText(recordOf(output), most)}`;
  },
  NodeFailed: ({ member, kind, message, attempt, retryable, fallbackTo, outageMs, usage, ...of }, most) => {
    const nextModel = typeof fallbackTo === 'string' ? fallbackTo : undefined;
    const { what, advice } = attemptFailureText(textOf(kind), nextModel) ?? { what: '', advice: '' };
    const next = nextActionText({
      retryable: retryable === true,
      ...(nextModel !== undefined && { fallbackTo: nextModel }),
      ...(typeof outageMs === 'number' && { outageMs }),
    });
    const sentences = [what, next, advice, textOf(message)].filter((each) => each !== '');
    const cost = usage === undefined ? '' : `, ${costOf(usage, of)}`;
    return `${memberText(member, most)}${textOf(kind)}${again(attempt)}${cost}: ${sentences.join(' ')}`;
  },
  QuorumReached: ({ until }) => `the others have until ${textOf(until)}`,
  PanelClosed: ({ answered, failed, discarded, result, route }) => {
    const groups = Object.entries({ answered, failed, discarded });
    const members = groups.filter(([, ids]) => Array.isArray(ids) && ids.length > 0);
    const outcome = members.map(([word, ids]) => `${word} ${textOf(ids)}`).join('; ');
    return `${[...routeOf(route), outcome].join(': ')}${resultText(recordOf(result))}`;
  },
  RunPaused: ({ nextNodes, gate, reason, budget }) => {
    const head = `pause ${textOf(gate)}${reason === 'budget' ? ' for the budget' : ''}, before ${textOf(nextNodes)}`;
    return budget === undefined ? head : `${head}: ${spendingText(spendingIn(budget))}`;
  },
  VoteCast: ({ action, gate, actor, comment }, most) =>
    `${textOf(action)} of pause ${textOf(gate)}, one vote${by(actor, most)}${commentText(comment, most)}`,
  PauseEscalated: ({ gate, to }) => `pause ${textOf(gate)}, to ${textOf(to)}`,
  GateDecided: ({ action, gate, modifiedState, actor, comment, budget, by: how }, most) => {
    const changed = Object.keys(recordOf(modifiedState));
    const sets = changed.length === 0 ? '' : `, sets ${changed.join(', ')}`;
    const raised = budget === undefined ? '' : `, ${budgetOf(budget)}`;
    const head = `${textOf(action)} of pause ${textOf(gate)}${by(how === 'deadline' ? 'its deadline' : actor, most)}`;
    return `${head}${raised}${sets}${commentText(comment, most)}`;
  },
  RunCompleted: ({ finalDraft, finalOutput, criticScore, iterationCount, usage, endedBy }, most) => {
    const stop = endedBy === 'budget' ? `${BUDGET_ENDS.finished}: ` : '';
    const draft = typeof finalDraft === 'string' ? draftSummary(finalDraft, most) : 'no draft';
    const cost = usage === undefined ? '' : `${totalsText(usage)}, `;
    const iterations = iterationCount === 1 ? '1 iteration' : `${textOf(iterationCount)} iterations`;
    const output = finalOutput === undefined ? '' : `, output ${excerpt(JSON.stringify(finalOutput), most)}`;
    return `${stop}score ${textOf(criticScore)}, ${iterations}, ${cost}${draft}${output}`;
  },
  RunFailed: ({ kind, error, actor, usage }, most) => {
    const cost = usage === undefined ? '' : `, ${totalsText(usage)}`;
    return `${textOf(kind)}${by(actor, most)}${cost}: ${textOf(error)}`;
  },
};

function of<T>(table: Readonly<Partial<Record<RunFactType, T>>>, type: string): T | undefined {
  return isKeyOf(table, type) ? table[type] : undefined;
}

function budgetOf(budget: unknown): string {
  return `budget ${limitsText(limitsIn(budget))}`;
}

function spendingIn(budget: unknown): Parameters<typeof spendingText>[0] {
  const [spent, needed] = [limitsIn(fieldOf(budget, 'spent')), limitsIn(fieldOf(budget, 'needed'))];
  return {
    ...limitsIn(budget),
    spent: { ...spent, tokens: spent.tokens ?? 0 },
    needed: { ...needed, tokens: needed.tokens ?? 0 },
  };
}

function limitsIn(value: unknown) {
  const { usd, tokens } = recordOf(value);
  return { usd: numberOr(usd), tokens: numberOr(tokens) };
}

function memberText(member: unknown, most: number): string {
  return typeof member === 'string' ? `${excerpt(member, most)}: ` : '';
}

/** Where the run goes, or nothing if it goes nowhere or a panel decides. */
function routeOf(route: unknown): readonly string[] {
  const { next } = recordOf(route);
  return Array.isArray(next) && next.length > 0 ? [`to ${textOf(next)}`] : [];
}

function outputText(output: Data, most: number): string {
  const { draft, answer, score, feedback, ranking, comment, analysis } = output;
  if (typeof draft === 'string') return draftSummary(draft, most);
  if (typeof answer === 'string') return `answer of ${[...answer].length} characters ${quoted(answer, most)}`;
  if (score !== undefined) return `score ${textOf(score)} ${quoted(feedback, most)}`;
  if (analysis !== undefined) return analysisText(recordOf(analysis));
  return ranking === undefined ? excerpt(output, most) : `ranked ${textOf(ranking)} ${quoted(comment, most)}`;
}

/** How much a judge has found of each kind. */
function analysisText(analysis: Data): string {
  const lists = Object.entries(analysis).flatMap(([name, items]) =>
    Array.isArray(items) ? [[name, items.length]] : [],
  );
  return `analysis: ${lists.map(([name, length]) => `${String(name).replaceAll('_', ' ')} ${length}`).join(', ')}`;
}

/** What a rank has kept, or the score of a jury. */
function resultText({ kept, score }: Data): string {
  if (score !== undefined) return `; score ${textOf(score)}`;
  return kept === undefined ? '' : `; kept ${textOf(kept)}`;
}

function by(actor: unknown, most: number): string {
  return typeof actor === 'string' ? ` by ${excerpt(actor, most)}` : '';
}

function commentText(comment: unknown, most: number): string {
  return typeof comment === 'string' ? `: ${quoted(comment, most)}` : '';
}

function draftSummary(draft: string, most: number): string {
  return `draft of ${[...draft].length} characters ${quoted(draft, most)}`;
}

/** The tokens and the cost of an attempt, as recorded. */
function costOf(usage: unknown, { costUsd, model }: Data): string {
  const amounts = amountsOf({ ...recordOf(usage), costUsd });
  // Older events hold no cost.
  const unpriced = costUsd === null ? unpricedModels([{ model: textOf(model), ...amounts }]) : [];
  return usageText({ ...amounts, unpriced });
}

function totalsText(usage: unknown): string {
  const totals = recordOf(usage);
  const [calls, told] = [numberOr(totals['calls']), numberOr(totals['toldCalls'])];
  const models = listOf(totals['byModel']).map((each) => recordOf(each));
  const unpriced = models.map((each) => ({ model: textOf(each['model']), ...amountsOf(each) }));
  return usageText({
    ...amountsOf(totals),
    ...(calls !== null && { calls, unmeteredCalls: calls - (told ?? calls) }),
    unpriced: unpricedModels(unpriced),
  });
}

function amountsOf({ inputTokens, outputTokens, costUsd }: Data) {
  return { inputTokens: numberOr(inputTokens), outputTokens: numberOr(outputTokens), costUsd: numberOr(costUsd) };
}

function numberOr(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function again(attempt: unknown): string {
  return attempt === 1 ? '' : `, attempt ${textOf(attempt)}`;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function quoted(value: unknown, most: number): string {
  return `"${excerpt(value, most)}"`;
}

function excerpt(value: unknown, most: number): string {
  return cut(inOneLine(textOf(value).slice(0, 4 * most)), most);
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const all = [...text];
  return all.length <= most ? text : `${all.slice(0, most - 1).join('')}…`;
}
