/**
 * A draft as blocks: a safe part of Markdown as plain objects, never as HTML. Whatever is none of it stays text. Each
 * level of nesting reads its lines once and there are few levels, so that time grows with the length of the text.
 */
import type { Inline } from './draft-inlines.js';
import { inlinesOf } from './draft-inlines.js';

export type Block =
  | { readonly kind: 'paragraph'; readonly inlines: readonly Inline[] }
  /** Levels of pages are above those of drafts: they begin at 3. */
  | { readonly kind: 'heading'; readonly level: 3 | 4 | 5 | 6; readonly inlines: readonly Inline[] }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  /** `start`: number of the first item; null: a list without numbers. */
  | { readonly kind: 'list'; readonly start: number | null; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'rule' };

/** Quotes and lists within each other; what is deeper is read as paragraphs. */
const MOST_DEEP = 8;

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^\s*([-*+]|(\d{1,9})([.)]))(?:\s|$)/;
const LEVELS = [3, 4, 5, 6, 6, 6] as const;

/** The blocks of a draft. */
export function draftBlocks(draft: string): readonly Block[] {
  return blocksOf(draft.split(/\r\n?|\n/), 0);
}

function blocksOf(all: readonly string[], depth: number): readonly Block[] {
  const lines = new Lines(all);
  const blocks: Block[] = [];
  for (;;) {
    lines.takeWhile(isBlank);
    if (lines.next === undefined) return blocks;
    blocks.push(blockIn(lines, lines.next, depth));
  }
}

/** Lines that are taken one after the other. */
class Lines {
  readonly #lines: readonly string[];
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** The line that is not taken yet; undefined: all are. */
  get next(): string | undefined {
    return this.#lines[this.#at];
  }

  take(): string {
    this.#at += 1;
    return this.#lines[this.#at - 1] ?? '';
  }

  takeWhile(holds: (line: string, before: string) => boolean): readonly string[] {
    const from = this.#at;
    while (this.next !== undefined && holds(this.next, this.#lines[this.#at - 1] ?? '')) this.#at += 1;
    return this.#lines.slice(from, this.#at);
  }
}

/** Takes the lines of a block. @param line the first of them */
function blockIn(lines: Lines, line: string, depth: number): Block {
  const [, fence] = FENCE.exec(line) ?? [];
  if (fence !== undefined) return codeIn(lines, fence);
  const [, marks, text = ''] = HEADING.exec(line) ?? [];
  if (marks !== undefined) {
    lines.take();
    return { kind: 'heading', level: LEVELS[marks.length - 1] ?? 6, inlines: inlinesOf(text.trim()) };
  }
  if (RULE.test(line)) {
    lines.take();
    return { kind: 'rule' };
  }
  if (depth < MOST_DEEP && QUOTE.test(line)) {
    const inner = lines.takeWhile((each) => QUOTE.test(each)).map((each) => each.replace(QUOTE, ''));
    return { kind: 'quote', blocks: blocksOf(inner, depth + 1) };
  }
  if (depth < MOST_DEEP && ITEM.test(line)) return listIn(lines, depth);
  const own = [lines.take(), ...lines.takeWhile((each) => !isBlank(each) && !endsParagraph(each))];
  return {
    kind: 'paragraph',
    inlines: inlinesOf(
      own
        .map((each) => each.trimStart())
        .join('\n')
        .trimEnd(),
    ),
  };
}

function isBlank(line: string): boolean {
  return line.trim() === '';
}

/** Whether a line begins something else than more of a paragraph. */
function endsParagraph(line: string): boolean {
  const [, bullet, number = '1'] = ITEM.exec(line) ?? [];
  // A sentence may break before a number: only a first item begins a list there.
  return beginsBlock(line) || (bullet !== undefined && number === '1');
}

function beginsBlock(line: string): boolean {
  return [FENCE, HEADING, RULE, QUOTE].some((pattern) => pattern.test(line));
}

/** Until its end, or that of the text: a draft may still be being written. */
function codeIn(lines: Lines, fence: string): Block {
  const indent = indentOf(lines.take());
  const isEnd = (bare: string): boolean => bare.startsWith(fence) && bare.replaceAll(fence.charAt(0), '') === '';
  const text = lines.takeWhile((line) => !isEnd(line.trim())).map((line) => withoutIndent(line, indent));
  lines.take();
  return { kind: 'code', text: text.join('\n') };
}

/** As long as items begin with the same sign. */
function listIn(lines: Lines, depth: number): Block {
  const [, , start] = ITEM.exec(lines.next ?? '') ?? [];
  const sign = signOf(lines.next ?? '');
  const items: (readonly Block[])[] = [];
  while (lines.next !== undefined && !RULE.test(lines.next) && signOf(lines.next) === sign) {
    items.push(blocksOf(itemIn(lines), depth + 1));
  }
  return { kind: 'list', start: start === undefined ? null : Number(start), items };
}

/** What distinguishes a list from another right behind it. */
function signOf(line: string): string | undefined {
  const [, bullet, , sign = bullet] = ITEM.exec(line) ?? [];
  return sign;
}

/** An item goes on in lines that stand further in, and in the next lines of its paragraph. */
function itemIn(lines: Lines): readonly string[] {
  const first = lines.take();
  const indent = indentOf(first);
  const [, mark = ''] = ITEM.exec(first) ?? [];
  const more = lines.takeWhile((line, before) => {
    if (isBlank(line) || indentOf(line) >= indent + 2) return true;
    return !isBlank(before) && !ITEM.test(line) && !beginsBlock(line);
  });
  const width = indent + mark.length + 1;
  return [first.replace(ITEM, ''), ...more.map((line) => withoutIndent(line, width))];
}

/** Columns before its first sign; a tab stands for four. */
function indentOf(line: string): number {
  const [space = ''] = /^\s*/.exec(line) ?? [];
  return space.replaceAll('\t', '    ').length;
}

function withoutIndent(line: string, columns: number): string {
  return columns === 0 ? line : ' '.repeat(Math.max(0, indentOf(line) - columns)) + line.trimStart();
}
