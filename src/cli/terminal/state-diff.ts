/** The difference between two states of runs: field by field, texts line by line. */
import type { FoldedRun } from '../../generated/schemas.js';
import type { RunCost } from '../records/run-cost.js';
import { BUDGET_ENDS } from '../../run/budget/end.js';
import { budgetText } from '../../run/cost-text.js';
import { reservationFor } from '../../run/budget/spending.js';
import { usageOf } from '../../run/effort.js';
import type { Style, Styler } from './printer.js';
import { inOneLine, printable } from './printer.js';
import { utf8Bytes } from '../../graph/limits.js';
import { countOf } from './table.js';
import { usageText, usedOf } from './usage-text.js';
import { diffArrays } from 'diff/lib/diff/array.js';

/** Unchanged lines shown around each change. */
const CONTEXT = 3;

/** The fields to compare; `run_id` and `seq` identify the state. */
type Field = Exclude<keyof FoldedRun, 'run_id' | 'seq'>;

type Value = FoldedRun[Field];

interface Change {
  readonly from: Value;
  readonly to: Value;
}

export interface StateDiff {
  readonly from: Pick<FoldedRun, 'run_id' | 'seq'>;
  readonly to: Pick<FoldedRun, 'run_id' | 'seq'>;
  /** Both values of each field that differs. */
  readonly changes: Readonly<Partial<Record<Field, Change>>>;
}

export function stateDiff(from: FoldedRun, to: FoldedRun): StateDiff {
  const changed = Object.keys(to)
    .filter(isField)
    .filter((name) => JSON.stringify(from[name]) !== JSON.stringify(to[name]));
  return {
    from: { run_id: from.run_id, seq: from.seq },
    to: { run_id: to.run_id, seq: to.seq },
    changes: Object.fromEntries(changed.map((name) => [name, { from: from[name], to: to[name] }])),
  };
}

/** @param name a key of a folded run */
function isField(name: string): name is Field {
  return name !== 'run_id' && name !== 'seq';
}

export function diffText({ from, to, changes }: StateDiff, style: Styler): string {
  const heads = [
    style('red', `--- ${inOneLine(from.run_id)} after event ${from.seq}`),
    style('green', `+++ ${inOneLine(to.run_id)} after event ${to.seq}`),
  ];
  const bodies = Object.entries(changes).map(([name, change]) =>
    name === 'final_draft' && isOfDraft(change, changes.current_draft)
      ? `${style('bold', name)}: as current_draft`
      : fieldText(name, change, style),
  );
  return [...heads, ...(bodies.length === 0 ? ['The states are the same.'] : bodies)]
    .map((each) => `${each}\n`)
    .join('');
}

/** Whether the final draft changed exactly as the current draft, whose change is shown too. */
function isOfDraft({ from, to }: Change, draft: Change | undefined): boolean {
  return draft !== undefined && to === draft.to && (from === null || from === draft.from);
}

function fieldText(name: string, change: Change, style: Styler): string {
  const [before, after] = [linesOf(change.from), linesOf(change.to)];
  if (before.length <= 1 && after.length <= 1) {
    return `${style('bold', name)}: ${style('red', oneOf(change.from))} → ${style('green', oneOf(change.to))}`;
  }
  return [style('bold', `${name}:`), ...hunks(lineDiff(before, after), style)].join('\n');
}

/** The lines of a text, of the texts of a list, or of a JSON value. */
function linesOf(value: Value): readonly string[] {
  if (value === null) return [];
  if (isTexts(value)) return value.flatMap((item) => item.split('\n'));
  return (typeof value === 'string' ? value : JSON.stringify(value, null, 2)).split('\n');
}

function isTexts(value: Value): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function oneOf(value: Value): string {
  const [line] = linesOf(value);
  return line === undefined ? '-' : inOneLine(line);
}

function hunks(changes: readonly LineChange[], style: Styler): readonly string[] {
  const isNear = new Array<boolean>(changes.length).fill(false);
  changes.forEach(({ kind }, index) => {
    if (kind !== 'same') isNear.fill(true, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  const lines: string[] = [];
  let [before, after] = [0, 0];
  changes.forEach((change, index) => {
    if (isNear[index] === true) {
      if (isNear[index - 1] !== true) lines.push(style('cyan', `  @@ line ${before + 1} → ${after + 1} @@`));
      lines.push(lineText(change, style));
    }
    if (change.kind !== 'added') before += 1;
    if (change.kind !== 'removed') after += 1;
  });
  return lines;
}

function lineText({ kind, text }: LineChange, style: Styler): string {
  const line = printable(text);
  if (kind === 'same') return `    ${line}`;
  return kind === 'removed' ? style('red', `  - ${line}`) : style('green', `  + ${line}`);
}

/** Columns of the name of a field. */
const NAME = 14;

const STATUS_STYLES: Readonly<Record<FoldedRun['status'], Style>> = {
  pending: 'dim',
  running: 'cyan',
  paused: 'yellow',
  completed: 'green',
  failed: 'red',
};

/** @param cost of the run, or null if it is unknown */
export function stateText(run: FoldedRun, cost: RunCost | null, style: Styler): string {
  const field = (name: string, value: string | number | null, valueStyle?: Style): string => {
    const text = value === null ? '-' : inOneLine(String(value));
    return `${style('bold', name.padEnd(NAME))}${valueStyle === undefined ? text : style(valueStyle, text)}\n`;
  };
  const end = cost?.budgetEnd ?? null;
  const isDraftFinal = run.final_draft !== null && run.final_draft === run.current_draft;
  return [
    field('run', `${run.run_id} after event ${run.seq}`),
    field('status', run.status, STATUS_STYLES[run.status]),
    ...(end === 'finished' ? [field('end', BUDGET_ENDS.finished, 'yellow')] : []),
    ...(run.error === null ? [] : [field('error', end === null ? run.error : BUDGET_ENDS[end], 'red')]),
    field('topic', run.input_topic),
    ...(run.material === null ? [] : [field('material', `${utf8Bytes(run.material)} bytes`)]),
    field('active node', run.active_node),
    ...(run.paused ? [field('paused before', run.next_nodes.join(', '), 'yellow')] : []),
    field('iterations', run.iteration_count),
    field('score', run.critic_score),
    field('route', run.route_decision),
    ...costFields(cost).map(([name, value]) => field(name, value)),
    ...run.feedback_history.map((feedback, index) => field(`feedback ${index + 1}`, feedback)),
    text(isDraftFinal ? 'final draft' : 'draft', run.current_draft, style),
    ...(isDraftFinal ? [] : [text('final draft', run.final_draft, style)]),
    text('final output', run.final_output === null ? null : JSON.stringify(run.final_output, null, 2), style),
  ].join('');
}

/** The usage, and what is spent of the budget if there is one. */
function costFields(cost: RunCost | null): readonly (readonly [name: string, value: string])[] {
  if (cost === null) return [];
  const totals = usageOf(cost.effort);
  const used = usageText(usedOf(totals));
  const usage = totals.calls === 0 ? used : `${countOf(totals.calls, 'call')}, ${used}`;
  if (cost.spending === null) return [['usage', usage]];
  const { budget, spent } = cost.spending;
  const spending = budgetText({ ...budget, spentUsd: reservationFor(spent).usd, spentTokens: spent.tokens });
  return [
    ['usage', usage],
    ['budget', `${spending}, then ${budget.onExceeded}`],
  ];
}

function text(name: string, content: string | null, style: Styler): string {
  if (content === null) return '';
  return `${style('bold', `${name}:`)}\n${printable(content).replaceAll(/^/gm, '  ')}\n`;
}

interface LineChange {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/**
 * Most changed lines for which the shortest difference is computed: 0.1 s, and the time grows with their square. With more,
 * everything between the common beginning and the common end counts as replaced.
 */
const MAX_EDITS = 1_000;

/** The shortest difference between two lists of lines, up to MAX_EDITS. */
export function lineDiff(before: readonly string[], after: readonly string[]): readonly LineChange[] {
  const found = diffArrays([...before], [...after], { maxEditLength: MAX_EDITS });
  if (found === undefined) return replaced(before, after);
  return found.flatMap(({ value, removed, added }) => lines(removed ? 'removed' : added ? 'added' : 'same', value));
}

/** Replaces everything between the common beginning and the common end. */
function replaced(before: readonly string[], after: readonly string[]): readonly LineChange[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return [
    ...lines('same', before.slice(0, head)),
    ...lines('removed', before.slice(head, before.length - tail)),
    ...lines('added', after.slice(head, after.length - tail)),
    ...lines('same', before.slice(before.length - tail)),
  ];
}

function lines(kind: LineChange['kind'], texts: readonly string[]): readonly LineChange[] {
  return texts.map((text) => ({ kind, text }));
}
