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
const FOLD_LINES = 6;
/** Share of their words from which on two lines are one that was rewritten, and how much may be looked at to find it. */
const [LIKE, MOST_LIKENESS] = [0.5, 500_000];

/** The way from one draft to another; null: there is none yet. */
export function textDiff(before: string | null, after: string | null): TextDiff {
  const budget = { words: MOST_WORDS };
  const found = blocksOf(linesIn(before), linesIn(after)).flatMap(rewrittenLines);
  const blocks = found.map(({ removed, added, same }): DiffBlock => {
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
  const changes = arrayDiff(before, after, MOST_LINE_EDITS);
  changes.forEach(({ kind, items }, at) => {
    const last = blocks.at(-1);
    const isBetween = at < changes.length - 1 && items.every((line) => line.trim() === '');
    if (kind === 'same' && !(isBetween && isChanged(last))) blocks.push({ ...NO_LINES, same: items });
    else if (!isChanged(last)) blocks.push({ ...NO_LINES, [kind]: items });
    else if (kind !== 'same') blocks[blocks.length - 1] = { ...last, [kind]: [...last[kind], ...items] };
    // Empty lines hold nothing together: what was taken out around them is told in one piece, and so is what came.
    else blocks[blocks.length - 1] = addedToBoth(last, items);
  });
  return blocks;
}

function isChanged(block: LineBlock | undefined): block is LineBlock {
  return block !== undefined && block.same.length === 0;
}

function addedToBoth({ removed, added }: LineBlock, lines: readonly string[]): LineBlock {
  return { ...NO_LINES, removed: [...removed, ...lines], added: [...added, ...lines] };
}

const NO_LINES: LineBlock = { same: [], removed: [], added: [] };

/** Lines that have become others, each beside its own; what has nothing in common is told whole, not word by word. */
function rewrittenLines(block: LineBlock): readonly LineBlock[] {
  const { removed, added } = block;
  if (removed.length === 0 || added.length === 0) return [block];
  const [old, young] = [removed.map(countsIn), added.map(countsIn)];
  if (added.length * old.reduce((sum, { size }) => sum + size, 0) > MOST_LIKENESS) return [block];
  const blocks: LineBlock[] = [];
  let [fromOld, fromYoung] = [0, 0];
  const passTo = (toOld: number, toYoung: number): void => {
    if (toOld > fromOld) blocks.push({ ...NO_LINES, removed: removed.slice(fromOld, toOld) });
    if (toYoung > fromYoung) blocks.push({ ...NO_LINES, added: added.slice(fromYoung, toYoung) });
  };
  for (const [at, partner] of pairsOf(old, young)) {
    passTo(at, partner);
    blocks.push({ ...NO_LINES, removed: removed.slice(at, at + 1), added: added.slice(partner, partner + 1) });
    [fromOld, fromYoung] = [at + 1, partner + 1];
  }
  passTo(removed.length, added.length);
  return blocks;
}

type Counts = ReadonlyMap<string, number>;

/** How often a line has which word. */
function countsIn(line: string): Counts {
  const counts = new Map<string, number>();
  for (const word of tokensIn(line)) if (word.trim() !== '') counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Lines alike enough, in the order of both, so that as much as can be is kept. */
function pairsOf(old: readonly Counts[], young: readonly Counts[]): readonly (readonly [number, number])[] {
  const alike = old.map((one) => young.map((other) => likenessOf(one, other)));
  // From each place on, the most likeness that can still be had.
  const most = Array.from({ length: old.length + 1 }, () => new Float64Array(young.length + 1));
  const at = (row: number, column: number): number => most[row]?.[column] ?? 0;
  const taken = (row: number, column: number): number => {
    const likeness = alike[row]?.[column] ?? 0;
    return likeness >= LIKE ? likeness + at(row + 1, column + 1) : -1;
  };
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = young.length - 1; column >= 0; column -= 1) {
      const best = Math.max(taken(row, column), at(row + 1, column), at(row, column + 1));
      most[row]?.fill(best, column, column + 1);
    }
  }
  const pairs: (readonly [number, number])[] = [];
  for (let [row, column] = [0, 0]; row < old.length && column < young.length;) {
    if (taken(row, column) === at(row, column)) pairs.push([row++, column++]);
    else if (at(row + 1, column) === at(row, column)) row += 1;
    else column += 1;
  }
  return pairs;
}

/** Share of the words of two lines that both have, from 0 to 1. */
function likenessOf(one: Counts, other: Counts): number {
  const total = (counts: Counts): number => [...counts.values()].reduce((sum, count) => sum + count, 0);
  const all = total(one) + total(other);
  let both = 0;
  for (const [word, count] of one) both += Math.min(count, other.get(word) ?? 0);
  return all === 0 ? 0 : (2 * both) / all;
}

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
