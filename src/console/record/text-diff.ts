/** Compares two drafts line by line, and rewritten lines word by word. */
import { diffArrays } from 'diff';

/** A piece of text that both texts, only the new or only the old text have. */
export interface DiffSegment {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Lines that are unchanged or in one text only, or one rewritten line with the pieces of both texts. */
export type DiffBlock = readonly DiffSegment[];

export interface TextDiff {
  readonly blocks: readonly DiffBlock[];
  /** Words of the new text alone, and of the old text alone. */
  readonly addedWords: number;
  readonly removedWords: number;
}

/** Limit on comparisons of one diff: about 0.3 s. Beyond it, the rest is one replaced block. */
const MOST_COMPARISONS = 4_000_000;
/** Share of common words from which two lines count as one rewritten line. */
const ALIKE = 0.5;

/** @param before the old draft, or null if there is none; `after` likewise */
export function textDiff(before: string | null, after: string | null): TextDiff {
  const budget = { comparisons: MOST_COMPARISONS };
  const blocks = runsOf(linesIn(before), linesIn(after), { budget }).flatMap((run) => blocksOf(run, budget));
  const words = (kind: DiffSegment['kind']): number =>
    blocks.flat().reduce((sum, each) => sum + (each.kind === kind ? wordsIn(each) : 0), 0);
  return { blocks, addedWords: words('added'), removedWords: words('removed') };
}

/** An empty text has no lines. */
function linesIn(text: string | null): readonly string[] {
  return text === null || text === '' ? [] : text.split(/\r?\n/);
}

function wordsIn({ text }: DiffSegment): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** Common items, or removed items and their replacement. */
interface Run {
  readonly isSame: boolean;
  readonly old: readonly string[];
  readonly young: readonly string[];
}

interface Budget {
  comparisons: number;
}

interface Comparison {
  readonly budget: Budget;
  /** Default: equality. */
  readonly isAlike?: (one: string, other: string) => boolean;
  /** Cost of one `isAlike` call in comparisons. Default: 1. */
  readonly cost?: number;
}

/** The smallest edit, or one replacement of all items if the budget does not allow the search. */
function runsOf(old: readonly string[], young: readonly string[], comparison: Comparison): readonly Run[] {
  const { budget, isAlike = (one, other) => one === other, cost = 1 } = comparison;
  // The time grows with the square of the edits.
  const maxEditLength = Math.floor(Math.sqrt(Math.max(0, budget.comparisons) / cost));
  const found = diffArrays([...old], [...young], { maxEditLength, comparator: isAlike });
  const edits = found?.reduce((sum, { added, removed, count }) => sum + (added || removed ? count : 0), 0);
  budget.comparisons -= cost * (edits ?? maxEditLength) ** 2;
  if (found === undefined) return [{ isSame: false, old, young }];
  let [row, column] = [0, 0];
  const runs = found.map(({ added, removed, count }): Run => {
    const [fromRow, fromColumn] = [row, column];
    if (!added) row += count;
    if (!removed) column += count;
    return { isSame: !added && !removed, old: old.slice(fromRow, row), young: young.slice(fromColumn, column) };
  });
  return joined(runs);
}

/** Joins runs across empty items, then moves their common end to the next run. */
function joined(runs: readonly Run[]): readonly Run[] {
  const all: { isSame: boolean; old: string[]; young: string[] }[] = [];
  runs.forEach(({ isSame, old, young }, at) => {
    const isEmpty = isSame && at > 0 && at < runs.length - 1 && old.every((item) => item.trim() === '');
    const last = all.at(-1);
    if (last === undefined || last.isSame !== (isSame && !isEmpty)) {
      all.push({ isSame: isSame && !isEmpty, old: [...old], young: [...young] });
    } else {
      for (const item of old) last.old.push(item);
      for (const item of young) last.young.push(item);
    }
  });
  all.forEach((run, at) => {
    const next = all[at + 1];
    if (run.isSame || next === undefined) return;
    while (run.old.length > 0 && run.young.length > 0 && run.old.at(-1) === run.young.at(-1)) {
      next.old.unshift(...run.old.splice(-1));
      next.young.unshift(...run.young.splice(-1));
    }
  });
  return all;
}

/** Compares rewritten lines word by word, each with its counterpart. */
function blocksOf(run: Run, budget: Budget): readonly DiffBlock[] {
  const { isSame, old, young } = run;
  if (isSame || old.length === 0 || young.length === 0) return segmentsOf(run, '\n').map((segment) => [segment]);
  const { isAlike, cost } = likenessOf(old, young);
  return runsOf(old, young, { budget, isAlike, cost }).flatMap((part): readonly DiffBlock[] => {
    if (!part.isSame) return segmentsOf(part, '\n').map((segment) => [segment]);
    return part.old.map((line, at) => rewritten(line, part.young[at] ?? '', budget));
  });
}

function rewritten(line: string, other: string, budget: Budget): DiffBlock {
  if (line === other) return [{ kind: 'same', text: line }];
  return runsOf(tokensIn(line), tokensIn(other), { budget }).flatMap((run) => segmentsOf(run, ''));
}

function segmentsOf({ isSame, old, young }: Run, separator: string): readonly DiffSegment[] {
  const [before, after] = [old.join(separator), young.join(separator)];
  if (isSame) return [{ kind: 'same', text: before }];
  return [
    ...(old.length > 0 ? [{ kind: 'removed', text: before } as const] : []),
    ...(young.length > 0 ? [{ kind: 'added', text: after } as const] : []),
  ];
}

/** Words, spaces and single signs; single letters in scripts without spaces. */
function tokensIn(text: string): readonly string[] {
  return text.match(/[^\s\p{P}\p{S}\u0e00-\u0e7f\u2e80-\u{10ffff}]+|\s+|[^]/gu) ?? [];
}

/** A comparison for lines: two lines are alike if they share half of their words. */
function likenessOf(old: readonly string[], young: readonly string[]): Required<Pick<Comparison, 'isAlike' | 'cost'>> {
  const words = new Map([...old, ...young].map((line) => [line, distinctWords(line)]));
  const total = [...words.values()].reduce((sum, each) => sum + each.size, 0);
  return {
    isAlike: (one, other) => one === other || shareOf(words.get(one), words.get(other)) >= ALIKE,
    cost: 1 + total / words.size,
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
