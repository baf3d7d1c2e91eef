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
  | { readonly kind: 'code'; readonly language: string | null; readonly text: string }
  | { readonly kind: 'rule' };

/** Quotes and lists within each other; what is deeper is read as paragraphs. */
const MOST_DEEP = 8;

/** The blocks of a draft. */
export function draftBlocks(draft: string): readonly Block[] {
  return blocksOf(draft.split(/\r\n?|\n/), 0);
}

/** A block, and the line behind it. */
interface Read {
  readonly block: Block;
  readonly next: number;
}

function blocksOf(lines: readonly string[], depth: number): readonly Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) at += 1;
    else {
      const { block, next } = blockAt(lines, at, depth);
      blocks.push(block);
      at = next;
    }
  }
  return blocks;
}

function blockAt(lines: readonly string[], at: number, depth: number): Read {
  const line = lines[at] ?? '';
  const fence = fenceOf(line);
  if (fence !== null) return codeAt(lines, at, fence);
  const heading = headingOf(line);
  if (heading !== null) return { block: heading, next: at + 1 };
  if (isRule(line)) return { block: { kind: 'rule' }, next: at + 1 };
  if (depth < MOST_DEEP && isQuoted(line)) return quoteAt(lines, at, depth);
  const item = depth < MOST_DEEP ? markerOf(line) : null;
  return item === null ? paragraphAt(lines, at, depth) : listAt(lines, at, { first: item, depth });
}

function paragraphAt(lines: readonly string[], at: number, depth: number): Read {
  let next = at + 1;
  while (next < lines.length && !isBlank(lines[next]) && !interrupts(lines[next] ?? '', depth)) next += 1;
  const text = lines.slice(at, next).map((line) => line.trimStart());
  return { block: { kind: 'paragraph', inlines: inlinesOf(text.join('\n').trimEnd()) }, next };
}

/** Whether a line begins something else than more of a paragraph. */
function interrupts(line: string, depth: number): boolean {
  if (fenceOf(line) !== null || headingOf(line) !== null || isRule(line)) return true;
  if (depth >= MOST_DEEP) return false;
  const marker = markerOf(line);
  // A sentence may break before a number: only a first item begins a list there.
  return isQuoted(line) || (marker !== null && (marker.number === null || marker.number === 1));
}

// Headings and rules.

function headingOf(line: string): Block | null {
  const [, marks = '', rest] = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/.exec(line) ?? [];
  if (marks === '') return null;
  const text = (rest ?? '').trim();
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  const isClosed = end === 0 || /\s/.test(text[end - 1] ?? '');
  const inlines = inlinesOf(isClosed ? text.slice(0, end).trimEnd() : text);
  return { kind: 'heading', level: LEVELS[marks.length - 1] ?? 6, inlines };
}

const LEVELS = [3, 4, 5, 6, 6, 6] as const;

function isRule(line: string): boolean {
  const first = line.trimStart()[0] ?? '';
  if (!'-*_'.includes(first) || first === '' || indentOf(line) > 3) return false;
  let count = 0;
  for (const sign of line) {
    if (sign === first) count += 1;
    else if (sign !== ' ' && sign !== '\t') return false;
  }
  return count >= 3;
}

// Code.

interface Fence {
  readonly sign: string;
  readonly length: number;
  readonly language: string | null;
}

function fenceOf(line: string): Fence | null {
  const [, marks = '', language = ''] = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)/.exec(line) ?? [];
  const isInline = marks.startsWith('`') && line.trimStart().slice(marks.length).includes('`');
  if (marks === '' || isInline) return null;
  return { sign: marks[0] ?? '`', length: marks.length, language: language === '' ? null : language };
}

/** Until its end, or that of the text: a draft may still be being written. */
function codeAt(lines: readonly string[], at: number, { sign, length, language }: Fence): Read {
  const indent = indentOf(lines[at] ?? '');
  let end = at + 1;
  while (end < lines.length && !isFenceEnd(lines[end] ?? '', sign, length)) end += 1;
  const text = lines.slice(at + 1, end).map((line) => withoutIndent(line, indent));
  return { block: { kind: 'code', language, text: text.join('\n') }, next: end + 1 };
}

function isFenceEnd(line: string, sign: string, length: number): boolean {
  const bare = line.trim();
  if (bare.length < length || indentOf(line) > 3) return false;
  for (const each of bare) if (each !== sign) return false;
  return true;
}

// Quotes.

function isQuoted(line: string): boolean {
  return /^ {0,3}>/.test(line);
}

function quoteAt(lines: readonly string[], at: number, depth: number): Read {
  let next = at + 1;
  while (next < lines.length && isQuoted(lines[next] ?? '')) next += 1;
  const inner = lines.slice(at, next).map((line) => line.replace(/^ {0,3}> ?/, ''));
  return { block: { kind: 'quote', blocks: blocksOf(inner, depth + 1) }, next };
}

// Lists.

/** The beginning of a list's item. */
interface Marker {
  /** Null: without a number. */
  readonly number: number | null;
  /** The sign of a list: another begins another list. */
  readonly sign: string;
  readonly indent: number;
  /** Where its text begins. */
  readonly width: number;
}

function markerOf(line: string): Marker | null {
  const [whole, space = '', bullet, number, sign = ''] = /^(\s*)(?:([-*+])|(\d{1,9})([.)]))(?=\s|$)/.exec(line) ?? [];
  if (whole === undefined) return null;
  const indent = indentOf(space);
  const width = indent + (whole.length - space.length) + 1;
  return { number: number === undefined ? null : Number(number), sign: bullet ?? sign, indent, width };
}

function listAt(
  lines: readonly string[],
  at: number,
  { first, depth }: { readonly first: Marker; readonly depth: number },
): Read {
  const items: (readonly Block[])[] = [];
  let next = at;
  for (let marker: Marker | null = first; marker !== null && isOfList(marker, first);) {
    const end = endOfItem(lines, next, marker);
    const { width } = marker;
    items.push(
      blocksOf(
        lines.slice(next, end).map((line, index) => innerLine(line, index, width)),
        depth + 1,
      ),
    );
    next = end;
    while (next < lines.length && isBlank(lines[next])) next += 1;
    const line = lines[next] ?? '';
    marker = isRule(line) ? null : markerOf(line);
  }
  return { block: { kind: 'list', start: first.number, items }, next };
}

function isOfList(marker: Marker, first: Marker): boolean {
  return marker.sign === first.sign && (marker.number === null) === (first.number === null);
}

/** An item goes on in lines that stand further in, and in the next lines of its paragraph. */
function endOfItem(lines: readonly string[], at: number, marker: Marker): number {
  let end = at + 1;
  for (let next = at + 1; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    if (isBlank(line)) continue;
    const isFurtherIn = indentOf(line) >= marker.indent + 2;
    const isSameParagraph = end === next && markerOf(line) === null && !interrupts(line, 0);
    if (!isFurtherIn && !isSameParagraph) break;
    end = next + 1;
  }
  return end;
}

function innerLine(line: string, index: number, width: number): string {
  return index === 0 ? line.trimStart().replace(/^(?:[-*+]|\d{1,9}[.)])\s?/, '') : withoutIndent(line, width);
}

// Lines.

function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === '';
}

/** Columns before its first sign; a tab stands for four. */
function indentOf(line: string): number {
  let columns = 0;
  for (const sign of line) {
    if (sign === ' ') columns += 1;
    else if (sign === '\t') columns += 4;
    else break;
  }
  return columns;
}

function withoutIndent(line: string, most: number): string {
  let [at, columns] = [0, 0];
  while (columns < most && (line[at] === ' ' || line[at] === '\t')) {
    columns += line[at] === '\t' ? 4 : 1;
    at += 1;
  }
  return line.slice(at);
}
