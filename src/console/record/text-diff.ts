/** What changed between two drafts, line by line and within a line word by word. */
import { diffArrays } from 'diff';

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

/** Comparisons of one text diff: some 0.3 s. When they are spent, what is left is replaced as a whole. */
const MOST_COMPARISONS = 4_000_000;
/** Share of their words from which on two lines are one that was rewritten. */
const ALIKE = 0.5;

/** The way from one draft to another; null: there is none yet. */
export function textDiff(before: string | null, after: string | null): TextDiff {
  const budget = { comparisons: MOST_COMPARISONS };
  const blocks = runsOf(linesIn(before), linesIn(after), { budget }).flatMap((run) => blocksOf(run, budget));
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

/** Items that both have, or those that were removed and those in their place. */
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
  /** Default: whether they are the same. */
  readonly isAlike?: (one: string, other: string) => boolean;
  /** How many comparisons one of `isAlike` stands for. Default: 1. */
  readonly cost?: number;
}

/** The fewest removed and added items; all of them when the budget does not allow that many. */
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

/** Empty items hold nothing together: what changed around them is one run, up to what both end with. */
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

/** Compares rewritten lines word by word, each with its own counterpart. */
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

/** Words, spaces and single signs; of writing without spaces single letters. */
function tokensIn(text: string): readonly string[] {
  return text.match(/[^\s\p{P}\p{S}\u0e00-\u0e7f\u2e80-\u{10ffff}]+|\s+|[^]/gu) ?? [];
}

/** Whether two lines are one that was rewritten: they share half of their words. */
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
