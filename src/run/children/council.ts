/** What follows for a council: which runs it starts, and its draft once all have ended. */
import type { DraftItem, DraftItems, ItemsOf } from '../../draft/items.js';
import type { ChildStartedData, ForEach } from '../../generated/schemas.js';
import { MAX_DRAFT_BYTES, MAX_PARALLEL, MAX_TOPIC_CHARS, codePoints, isLonger } from '../../graph/limits.js';
import { shareOf } from '../budget/spending.js';
import type { Branch } from '../frontier/branch.js';
import type { PendingEvents } from '../pending-events.js';
import type { Child, FrontierNode, RunState } from '../state.js';

/** Most runs of a council in a step. */
const MAX_ITEMS = 200;

/** Where a council stands. */
export type CouncilProgress =
  | { readonly kind: 'waits' }
  | { readonly kind: 'completed'; readonly draft: string }
  | { readonly kind: 'failed'; readonly error: string; readonly isOverBudget?: boolean };

/** Starts the next runs of a council, unless it has ended. */
export function continueCouncil(pending: PendingEvents, at: FrontierNode): CouncilProgress {
  const { run, context } = pending;
  const { forEach } = run.plan.node(at.node);
  const failed = fatalFailure(run, at);
  if (failed !== null) return failureOf(failed);
  if (forEach === undefined) return continueWith(pending, at, [null]);
  const { items, fault } = readItems(at.branch, forEach, context.itemsOf);
  if (fault !== undefined) return { kind: 'failed', error: fault };
  if (items.length > MAX_ITEMS) return { kind: 'failed', error: `${items.length} items are more than ${MAX_ITEMS}` };
  return items.length === 0 ? { kind: 'completed', draft: at.branch.draft ?? '' } : continueWith(pending, at, items);
}

/** @param items null for a run of a council without items */
function continueWith(pending: PendingEvents, at: FrontierNode, items: readonly (DraftItem | null)[]): CouncilProgress {
  const { run } = pending;
  const underWay = at.children.filter(({ end }) => end === null).length;
  const { maxParallel = MAX_PARALLEL } = run.plan.node(at.node);
  const known = new Set(at.children.map(({ index }) => index));
  const waiting = items.flatMap((item, index) => (known.has(index) ? [] : [{ item, index }]));
  if (underWay === 0 && waiting.length === 0) return resultOf(pending, at);
  for (const [started, { item, index }] of waiting.slice(0, Math.max(0, maxParallel - underWay)).entries()) {
    const { topic } = givenTo(run, at, { index, item });
    const fault = topicFault(topic);
    if (fault !== null) return { kind: 'failed', error: `The topic of run ${index} ${fault}` };
    const data = startOf(pending, at, { index, item, topic, items: items.length, share: waiting.length - started });
    pending.write({ type: 'ChildStarted', data });
  }
  return { kind: 'waits' };
}

function topicFault(topic: string): string | null {
  if (topic.trim() === '') return 'is empty';
  return codePoints(topic) > MAX_TOPIC_CHARS ? `has more than ${MAX_TOPIC_CHARS} characters` : null;
}

interface ItemPlace {
  /** From 0. */
  readonly index: number;
  readonly item: DraftItem | null;
}

/**
 * @param items how many the step has
 * @param share among how many runs what is left of the budget is shared
 */
function startOf(
  { run, context }: PendingEvents,
  { step, node }: FrontierNode,
  { index, item, topic, items, share }: ItemPlace & Readonly<{ topic: string; items: number; share: number }>,
): ChildStartedData {
  return {
    step,
    node,
    index,
    child: context.childId(run.runId, `${step}/${index}`),
    topicHash: context.sha256(topic),
    ...(item !== null && { title: item.title, items }),
    ...(run.spending !== null && { reserved: shareOf(run.spending, share) }),
  };
}

/** The topic and the material of a run that a council has started. */
export function givenToChild(
  run: RunState,
  at: FrontierNode,
  { index, itemsOf }: { readonly index: number; readonly itemsOf: ItemsOf },
): { readonly topic: string; readonly material: string } {
  const { forEach } = run.plan.node(at.node);
  const item = forEach === undefined ? null : (readItems(at.branch, forEach, itemsOf).items[index] ?? null);
  return givenTo(run, at, { index, item });
}

function givenTo({ plan, progress }: RunState, { node, branch }: FrontierNode, { index, item }: ItemPlace) {
  const { topic: template } = plan.node(node);
  const draft = branch.draft ?? '';
  const text = item?.text ?? draft;
  if (template === undefined) return { topic: progress.inputTopic, material: text };
  const words = new Map([
    ['topic', progress.inputTopic],
    ['draft', draft],
    ['item', text],
    ['index', String(index)],
  ]);
  const topic = template.replace(/\{\{\s*(\w+)\s*\}\}/g, (mark, word: string) => words.get(word) ?? mark);
  return { topic, material: '' };
}

/** The items of drafts, so that each end of a run does not parse its council's draft again. */
const READ = new WeakMap<Branch, Map<ForEach, DraftItems>>();

function readItems(branch: Branch, by: ForEach, itemsOf: ItemsOf): DraftItems {
  const known = READ.get(branch) ?? new Map<ForEach, DraftItems>();
  READ.set(branch, known);
  const items = known.get(by) ?? itemsOf(branch.draft ?? '', by);
  known.set(by, items);
  return items;
}

/** The draft of a council whose runs have all ended. */
function resultOf({ run, context }: PendingEvents, at: FrontierNode): CouncilProgress {
  const { forEach } = run.plan.node(at.node);
  const before = at.branch.draft ?? '';
  const children = [...at.children].sort((one, other) => one.index - other.index);
  const left = children.filter(({ end }) => end?.status === 'failed');
  const naming = left.length > 0 ? [leftOut(left)] : [];
  if (forEach === undefined) return draftOf([children[0]?.end?.output ?? before, ...naming]);
  if (left.length === children.length) {
    const isOverBudget = left.every(({ end }) => end?.isOverBudget === true);
    return isOverBudget ? draftOf([before]) : { kind: 'failed', error: 'None of its runs has completed' };
  }
  const mark = '#'.repeat(readItems(at.branch, forEach, context.itemsOf).level);
  const done = children.filter(({ end }) => end?.status === 'completed');
  return draftOf([...done.map(({ title = '', end }) => `${mark} ${title}\n${end?.output ?? ''}`), ...naming]);
}

function draftOf(parts: readonly string[]): CouncilProgress {
  const draft = parts.join('\n\n');
  return isLonger(draft, MAX_DRAFT_BYTES)
    ? { kind: 'failed', error: `The drafts of its runs are larger than ${MAX_DRAFT_BYTES} bytes` }
    : { kind: 'completed', draft };
}

function leftOut(failed: readonly Child[]): string {
  return `Left out, because their runs failed: ${failed.map(nameOf).join('; ')}.`;
}

/** The run whose failure fails its council, or null. */
function fatalFailure({ plan, spending }: RunState, { node, children }: FrontierNode): Child | null {
  if (plan.node(node).onError === 'skip') return null;
  // A run that finishes at its budget goes on with the results that there are.
  const isFinishing = spending?.budget.onExceeded === 'finish';
  const isFatal = ({ end }: Child): boolean => end?.status === 'failed' && !(isFinishing && end.isOverBudget === true);
  return children.find(isFatal) ?? null;
}

function failureOf(child: Child): CouncilProgress {
  const { error = '', isOverBudget = false } = child.end ?? {};
  return { kind: 'failed', error: `${nameOf(child)} failed: ${error}`, isOverBudget };
}

function nameOf({ index, title }: Child): string {
  return title === undefined ? 'Its run' : `Run ${index} ("${title}")`;
}
