/** What changed between two drafts, line by line and within a line word by word; and between two states, field by field. */
import { diffArrays } from 'diff/lib/diff/array.js';
import { canonical } from '../../eventsourcing/canonical-json.js';

/** A piece of text, and whether only the old or only the new one has it. */
export interface DiffSegment {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/**
 * Lines of a text, without their line ends: unchanged ones, or changed ones with the pieces of both texts in reading order;
 * pieces of several lines hold the line ends between them.
 */
export interface DiffBlock {
  readonly kind: 'same' | 'changed';
  readonly segments: readonly DiffSegment[];
  /** Lines of the old text that it covers, and of the new one. */
  readonly linesBefore: number;
  readonly linesAfter: number;
  /** Whether it is so long that it is shown folded, with some lines at its ends. */
  readonly isFoldable: boolean;
}

export interface TextDiff {
  readonly blocks: readonly DiffBlock[];
  /** Words that only the new text has, and only the old one. */
  readonly addedWords: number;
  readonly removedWords: number;
}

/**
 * Edits up to which the shortest way from one text to the other is sought: time grows with their square, some 50 ms of
 * lines and of words. Beyond, all between what both begin and end with is replaced.
 */
const [MOST_LINE_EDITS, MOST_WORD_EDITS] = [800, 400];
/** Words of all changed lines that are told apart; beyond, further lines are replaced whole. */
const MOST_WORDS = 40_000;
/** Unchanged lines from which on they may be folded. */
const FOLD_LINES = 8;

/** The way from one draft to another; null: there is none yet. */
export function textDiff(before: string | null, after: string | null): TextDiff {
  const budget = { words: MOST_WORDS };
  const blocks = blocksOf(linesIn(before), linesIn(after)).map(({ removed, added, same }): DiffBlock => {
    const [linesBefore, linesAfter] = [same.length + removed.length, same.length + added.length];
    const lines = { linesBefore, linesAfter, isFoldable: same.length >= FOLD_LINES };
    return same.length > 0
      ? { kind: 'same', segments: [{ kind: 'same', text: same.join('\n') }], ...lines }
      : { kind: 'changed', segments: wordDiff(removed, added, budget), ...lines };
  });
  const words = (kind: DiffSegment['kind']): number =>
    blocks.flatMap(({ segments }) => segments).reduce((sum, each) => sum + (each.kind === kind ? wordsIn(each) : 0), 0);
  return { blocks, addedWords: words('added'), removedWords: words('removed') };
}

/** A text without lines is none at all. */
function linesIn(text: string | null): readonly string[] {
  return text === null || text === '' ? [] : text.split(/\r?\n/);
}

function wordsIn({ text }: DiffSegment): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** Lines that both have, or those of the old text and those of the new one that stand in their place. */
interface LineBlock {
  readonly same: readonly string[];
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

function blocksOf(before: readonly string[], after: readonly string[]): readonly LineBlock[] {
  const blocks: LineBlock[] = [];
  for (const { kind, items } of arrayDiff(before, after, MOST_LINE_EDITS)) {
    const last = blocks.at(-1);
    if (kind === 'same') blocks.push({ ...NO_LINES, same: items });
    else if (last === undefined || last.same.length > 0) blocks.push({ ...NO_LINES, [kind]: items });
    else blocks[blocks.length - 1] = { ...last, [kind]: [...last[kind], ...items] };
  }
  return blocks;
}

const NO_LINES: LineBlock = { same: [], removed: [], added: [] };

/** Words told apart while the budget lasts. */
function wordDiff(
  removed: readonly string[],
  added: readonly string[],
  budget: { words: number },
): readonly DiffSegment[] {
  const [before, after] = [removed.join('\n'), added.join('\n')];
  if (removed.length === 0) return [{ kind: 'added', text: after }];
  if (added.length === 0) return [{ kind: 'removed', text: before }];
  const [old, young] = [tokensIn(before), tokensIn(after)];
  budget.words -= old.length + young.length;
  if (budget.words < 0) return wholly(before, after);
  const found = arrayDiff(old, young, MOST_WORD_EDITS).map(({ kind, items }) => ({ kind, text: items.join('') }));
  return joined(found);
}

function wholly(before: string, after: string): readonly DiffSegment[] {
  return [
    { kind: 'removed', text: before },
    { kind: 'added', text: after },
  ];
}

/** Words, spaces and single signs; of writing without spaces single letters. */
function tokensIn(text: string): readonly string[] {
  return text.match(TOKEN) ?? [];
}

const TOKEN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{M}\p{N}_'’])+|\s+|[^]/gu;

/** A space between two changes belongs to them: both are read in one piece. */
function joined(segments: readonly DiffSegment[]): readonly DiffSegment[] {
  const all: DiffSegment[] = [];
  let pending = { removed: '', added: '' };
  const flush = (): void => {
    if (pending.removed !== '') all.push({ kind: 'removed', text: pending.removed });
    if (pending.added !== '') all.push({ kind: 'added', text: pending.added });
    pending = { removed: '', added: '' };
  };
  segments.forEach(({ kind, text }, at) => {
    const isBetween = text.trim() === '' && !text.includes('\n') && at > 0 && at < segments.length - 1;
    if (kind !== 'same') pending[kind] += text;
    else if (isBetween) pending = { removed: pending.removed + text, added: pending.added + text };
    else {
      flush();
      all.push({ kind, text });
    }
  });
  flush();
  return all;
}

interface ArrayChange {
  readonly kind: DiffSegment['kind'];
  readonly items: readonly string[];
}

function arrayDiff(before: readonly string[], after: readonly string[], mostEdits: number): readonly ArrayChange[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const middle = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)] as const;
  const changes: readonly ArrayChange[] = [
    { kind: 'same', items: before.slice(0, head) },
    ...middleDiff(...middle, mostEdits),
    { kind: 'same', items: before.slice(before.length - tail) },
  ];
  return changes.filter(({ items }) => items.length > 0);
}

function middleDiff(before: string[], after: string[], maxEditLength: number): readonly ArrayChange[] {
  const isOneSided = before.length === 0 || after.length === 0;
  const found = isOneSided ? undefined : diffArrays(before, after, { maxEditLength });
  if (found === undefined) {
    return [
      { kind: 'removed', items: before },
      { kind: 'added', items: after },
    ];
  }
  return found.map(({ value, removed, added }) => ({
    kind: removed ? 'removed' : added ? 'added' : 'same',
    items: value,
  }));
}

// Fields.

/** A field whose value differs; undefined: that side has no such field. */
export interface FieldChange {
  /** Path of names and places, from the outside in. */
  readonly path: readonly (string | number)[];
  readonly before: unknown;
  readonly after: unknown;
}

/** Fields told apart; beyond, what holds them is told as a whole. */
const MOST_FIELD_CHANGES = 500;

/**
 * The fields that differ between two JSON values, in the order of the new one. Objects are looked into, lists of objects
 * with an `id` too (their path names the id); other lists are one value.
 */
export function fieldDiff(before: unknown, after: unknown): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  const walk = (path: FieldChange['path'], old: unknown, young: unknown): void => {
    if (isSame(old, young)) return;
    const parts = changes.length < MOST_FIELD_CHANGES ? partsOf(old, young) : null;
    if (parts === null) changes.push({ path, before: old, after: young });
    else for (const { name, ...part } of parts) walk([...path, name], part.before, part.after);
  };
  walk([], before, after);
  return changes;
}

interface Part {
  readonly name: string | number;
  readonly before: unknown;
  readonly after: unknown;
}

function partsOf(before: unknown, after: unknown): readonly Part[] | null {
  const [old, young] = [namedParts(before), namedParts(after)];
  if (old === null || young === null || Array.isArray(before) !== Array.isArray(after)) return null;
  const names = [...young.keys(), ...[...old.keys()].filter((name) => !young.has(name))];
  return names.map((name) => ({ name, before: old.get(name), after: young.get(name) }));
}

/** Parts by name, of a list by the ids of its items; null: it is looked at as a whole. */
function namedParts(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const items: readonly unknown[] = value;
  const ids = items.map(idOf);
  const isNamed = ids.every((id) => id !== null) && new Set(ids).size === ids.length;
  return isNamed ? new Map(items.map((item, at) => [ids[at] ?? '', item])) : null;
}

function idOf(item: unknown): string | null {
  return typeof item === 'object' && item !== null && 'id' in item && typeof item.id === 'string' ? item.id : null;
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return canonical(a) === canonical(b);
}
