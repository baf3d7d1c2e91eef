/** What changed between two drafts, line by line and within a line word by word; and between two states, field by field. */
import { canonical } from '../../eventsourcing/canonical-json.js';

/** A piece of text, and whether only the old or only the new one has it. */
export interface DiffSegment {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Lines of a text, without the last line end: unchanged, only in one of both, or one line with the pieces of both. */
export type DiffBlock = readonly DiffSegment[];

export interface TextDiff {
  readonly blocks: readonly DiffBlock[];
  /** Words that only the new text has, and only the old one. */
  readonly addedWords: number;
  readonly removedWords: number;
}

/** Pairs of lines, and of their words, that are looked at to keep as much as can be. Beyond, all that differs is replaced. */
const MOST_PAIRS = 6_000_000;
/** Share of their words from which on two lines are one that was rewritten. */
const LIKE = 0.5;

/** The way from one draft to another; null: there is none yet. */
export function textDiff(before: string | null, after: string | null): TextDiff {
  const budget = { pairs: MOST_PAIRS };
  const runs = runsOf(linesIn(before), linesIn(after), { likenessIn: likenessOfLines, budget });
  const blocks = runs.flatMap((run) => {
    if (run.kind !== 'alike') return segmentsOf(run, '\n').map((segment) => [segment]);
    const [old, young] = [tokensIn(run.old.join('')), tokensIn(run.young.join(''))];
    const words = runsOf(old, young, { likenessIn: () => (one, other) => Number(one === other), budget });
    return [words.flatMap((each) => segmentsOf(each, ''))];
  });
  const words = (kind: DiffSegment['kind']): number =>
    blocks.flat().reduce((sum, each) => sum + (each.kind === kind ? wordsIn(each) : 0), 0);
  return { blocks, addedWords: words('added'), removedWords: words('removed') };
}

/** A text without lines is none at all. */
function linesIn(text: string | null): readonly string[] {
  return text === null || text === '' ? [] : text.split(/\r?\n/);
}

function wordsIn({ text }: DiffSegment): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** Words, spaces and single signs; of writing without spaces single letters. */
function tokensIn(text: string): readonly string[] {
  return text.match(/[^\s\p{P}\p{S}\u0e00-\u0e7f\u2e80-\u{10ffff}]+|\s+|[^]/gu) ?? [];
}

/** Items that both have; one that has become another; or those that were taken out, and those in their place. */
interface Run {
  readonly kind: 'same' | 'alike' | 'apart';
  readonly old: readonly string[];
  readonly young: readonly string[];
}

function segmentsOf({ kind, old, young }: Run, separator: string): readonly DiffSegment[] {
  if (kind === 'same') return [{ kind, text: old.join(separator) }];
  const [removed, added] = [old.join(separator), young.join(separator)];
  return [
    ...(old.length > 0 ? [{ kind: 'removed', text: removed } as const] : []),
    ...(young.length > 0 ? [{ kind: 'added', text: added } as const] : []),
  ];
}

/** From 0, never one for the other, to 1, the same. */
type Likeness = (one: string, other: string) => number;

interface Comparison {
  readonly likenessIn: (old: readonly string[], young: readonly string[]) => Likeness;
  /** What may still be looked at. */
  readonly budget: { pairs: number };
}

/** Empty items hold nothing together: what was taken out around them is told in one piece, and so is what came. */
function runsOf(old: readonly string[], young: readonly string[], comparison: Comparison): readonly Run[] {
  const runs = joined(aligned(old, young, comparison));
  const isApart = (at: number): boolean => runs[at]?.kind === 'apart';
  return joined(
    runs.map((run, at) => {
      const isEmpty = run.kind === 'same' && run.old.every((item) => item.trim() === '');
      return isEmpty && isApart(at - 1) && isApart(at + 1) ? { ...run, kind: 'apart' } : run;
    }),
  );
}

/** Runs of one kind that follow each other as one; each line that was rewritten stays by itself. */
function joined(runs: readonly Run[]): readonly Run[] {
  const all: { kind: Run['kind']; old: string[]; young: string[] }[] = [];
  for (const { kind, old, young } of runs) {
    const last = all.at(-1);
    if (last?.kind !== kind || kind === 'alike') all.push({ kind, old: [...old], young: [...young] });
    else {
      for (const item of old) last.old.push(item);
      for (const item of young) last.young.push(item);
    }
  }
  return all;
}

/** What both begin and end with is kept, and of the middle what is most alike, in the order of both. */
function aligned(old: readonly string[], young: readonly string[], comparison: Comparison): readonly Run[] {
  const shorter = Math.min(old.length, young.length);
  let head = 0;
  while (head < shorter && old[head] === young[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === young.at(-1 - tail)) tail += 1;
  const same = (items: readonly string[]): Run => ({ kind: 'same', old: items, young: items });
  const middles = [old.slice(head, old.length - tail), young.slice(head, young.length - tail)] as const;
  const runs = [same(old.slice(0, head)), ...middleOf(...middles, comparison), same(old.slice(old.length - tail))];
  return runs.filter((run) => run.old.length + run.young.length > 0);
}

function middleOf(
  old: readonly string[],
  young: readonly string[],
  { likenessIn, budget }: Comparison,
): readonly Run[] {
  budget.pairs -= old.length * young.length;
  if (budget.pairs < 0) return [{ kind: 'apart', old, young }];
  const { most, withPair } = mostLikeness(old, young, likenessIn(old, young));
  const runs: Run[] = [];
  let [row, column] = [0, 0];
  const take = (kind: Run['kind'], rows: number, columns: number): void => {
    runs.push({ kind, old: old.slice(row, row + rows), young: young.slice(column, column + columns) });
    row += rows;
    column += columns;
  };
  while (row < old.length && column < young.length) {
    const here = most(row, column);
    if (withPair(row, column) === here) take(old[row] === young[column] ? 'same' : 'alike', 1, 1);
    else if (most(row + 1, column) === here) take('apart', 1, 0);
    else take('apart', 0, 1);
  }
  take('apart', old.length, young.length);
  return runs;
}

/** From each place on, the most likeness that can still be had: in all, and where the pair there is kept. */
function mostLikeness(old: readonly string[], young: readonly string[], likeness: Likeness) {
  const width = young.length + 1;
  const found = new Float64Array((old.length + 1) * width);
  const most = (row: number, column: number): number => found[row * width + column] ?? 0;
  const withPair = (row: number, column: number): number => {
    const alike = likeness(old[row] ?? '', young[column] ?? '');
    return alike > 0 ? alike + most(row + 1, column + 1) : -1;
  };
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = young.length - 1; column >= 0; column -= 1) {
      found[row * width + column] = Math.max(withPair(row, column), most(row + 1, column), most(row, column + 1));
    }
  }
  return { most, withPair };
}

/** Share of the words of two lines that both have, where it makes them one that was rewritten. */
function likenessOfLines(old: readonly string[], young: readonly string[]): Likeness {
  const words = new Map([...old, ...young].map((line) => [line, distinctWords(line)]));
  // Some 0.2 s of comparing words.
  const isMuch = young.length * old.join('').length > 4 * MOST_PAIRS;
  return (one, other) => {
    if (one === other) return 1;
    const share = isMuch ? 0 : shareOf(words.get(one), words.get(other));
    return share >= LIKE ? share : 0;
  };
}

function distinctWords(line: string): ReadonlySet<string> {
  return new Set(tokensIn(line).filter((token) => token.trim() !== ''));
}

function shareOf(one: ReadonlySet<string> = new Set(), other: ReadonlySet<string> = new Set()): number {
  let both = 0;
  for (const word of one) if (other.has(word)) both += 1;
  return (2 * both) / Math.max(1, one.size + other.size);
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
