/**
 * What stands within a paragraph of a draft: emphasis, code, links. Whatever is none of it stays text, HTML too. Every step
 * moves on in the text and nesting has a bound, so that time grows with the length of the text, however hostile it is.
 */

/** Never markup: a tree to make elements of. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis'; readonly inlines: readonly Inline[] }
  /** `href` begins with `http://`, `https://` or `mailto:`. */
  | { readonly kind: 'link'; readonly href: string; readonly inlines: readonly Inline[] }
  | { readonly kind: 'break' };

/** Deepest nesting; what would open more stays text. */
const MOST_OPEN = 16;

/** The parts of a text. */
export function inlinesOf(text: string): readonly Inline[] {
  return new InlineReader(text).read();
}

/** Something that was opened, and what it holds so far; the first holds all. */
interface Frame {
  /** As it was written; it becomes text again where nothing closes it. */
  readonly marker: string;
  /** Whether a link may still come of it: none holds another. */
  isAlive: boolean;
  readonly inlines: Inline[];
}

/** Whatever may be more than text. */
const SPECIAL = /[\\`*_[\]<\n]|!\[|https?:\/\//g;
/** What a backslash makes text of. */
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const LETTER = /[\p{L}\p{N}]/u;
const ADDRESS = /https?:\/\/[^\s<>"`*[\]()\\]+/y;
const BRACED_ADDRESS = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/iy;
/** A link's target: brackets end it, so that no two are looked for in the same text. */
const TARGET = /\(\s?<?((?:[^\s()<>[\]]|\([^\s()<>[\]]*\))*)>?(?:\s"[^"[\]\n]*")?\)/y;
const ALLOWED = /^(?:https?:\/\/|mailto:)[^\s]/i;

class InlineReader {
  readonly #text: string;
  readonly #frames: Frame[] = [{ marker: '', isAlive: false, inlines: [] }];
  /** Where links may end: no bracket behind the last opens one. */
  readonly #lastTarget: number;
  /** Starts of runs of backticks by their length, in order; what was passed is taken off. */
  #ticks: Map<number, number[]> | null = null;
  #at = 0;
  /** Where the text begins that no part holds yet. */
  #textFrom = 0;

  constructor(text: string) {
    this.#text = text;
    this.#lastTarget = text.lastIndexOf('](');
  }

  read(): readonly Inline[] {
    const text = this.#text;
    for (;;) {
      SPECIAL.lastIndex = this.#at;
      const found = SPECIAL.exec(text);
      if (found === null) break;
      this.#at = found.index;
      this.#special(found[0]);
    }
    this.#at = text.length;
    this.#flush();
    this.#giveUp(1);
    return this.#top.inlines;
  }

  #special(sign: string): void {
    switch (sign) {
      case '\\':
        return this.#escape();
      case '`':
        return this.#code();
      case '*':
      case '_':
        return this.#emphasis(sign);
      case '![':
      case '[':
        return this.#bracket(sign);
      case ']':
        return this.#bracketEnd();
      case '\n':
        return this.#lineEnd();
      case '<':
        return this.#address(BRACED_ADDRESS, 1);
      default:
        return this.#address(ADDRESS, 0);
    }
  }

  get #top(): Frame {
    const top = this.#frames.at(-1);
    if (top === undefined) throw new Error('The first frame is never closed');
    return top;
  }

  /** Puts the text before the current place into the open frame. */
  #flush(until = this.#at): void {
    this.#add({ kind: 'text', text: this.#text.slice(this.#textFrom, until) });
    this.#textFrom = this.#at;
  }

  #add(inline: Inline): void {
    addTo(this.#top.inlines, inline);
  }

  /** Leaves so many characters as text. */
  #pass(length: number): void {
    this.#at += length;
  }

  /** Goes on behind so many characters, which became a part. */
  #skip(length: number): void {
    this.#at += length;
    this.#textFrom = this.#at;
  }

  #escape(): void {
    const next = this.#text[this.#at + 1] ?? '';
    if (next === '\n') {
      this.#flush();
      this.#add({ kind: 'break' });
      this.#skip(2);
    } else if (PUNCTUATION.test(next)) {
      this.#flush();
      this.#textFrom = this.#at + 1;
      this.#pass(2);
    } else this.#pass(1);
  }

  #lineEnd(): void {
    const before = this.#text.slice(Math.max(this.#textFrom, this.#at - 2), this.#at);
    if (before !== '  ') return this.#pass(1);
    this.#flush(this.#at - 2);
    this.#add({ kind: 'break' });
    this.#skip(1);
  }

  #code(): void {
    const length = runAt(this.#text, this.#at, '`');
    const starts = (this.#ticks ??= ticksIn(this.#text)).get(length) ?? [];
    while ((starts.at(-1) ?? this.#text.length) <= this.#at) starts.pop();
    const end = starts.at(-1);
    if (end === undefined) return this.#pass(length);
    this.#flush();
    const inner = this.#text.slice(this.#at + length, end).replace(/\n/g, ' ');
    const isPadded = inner.startsWith(' ') && inner.endsWith(' ') && inner.trim() !== '';
    this.#add({ kind: 'code', text: isPadded ? inner.slice(1, -1) : inner });
    this.#skip(end + length - this.#at);
  }

  #emphasis(sign: '*' | '_'): void {
    const length = runAt(this.#text, this.#at, sign);
    if (length > 3) return this.#pass(length);
    const marker = sign.repeat(length);
    const [before, after] = [charBefore(this.#text, this.#at), charAfter(this.#text, this.#at + length)];
    const opened = this.#frames.findLastIndex((frame) => frame.marker === marker);
    const closes = opened > 0 && mayClose(sign, before, after);
    const opens = this.#frames.length < MOST_OPEN && mayOpen(sign, before, after);
    if (!closes && !opens) return this.#pass(length);
    this.#flush();
    if (closes) this.#close(opened, (inlines) => emphasized(length, inlines));
    else this.#frames.push({ marker, isAlive: false, inlines: [] });
    this.#skip(length);
  }

  /** A picture is shown as a link to it. */
  #bracket(marker: string): void {
    if (this.#at > this.#lastTarget || this.#frames.length >= MOST_OPEN) return this.#pass(marker.length);
    this.#flush();
    this.#frames.push({ marker, isAlive: true, inlines: [] });
    this.#skip(marker.length);
  }

  #bracketEnd(): void {
    const opened = this.#frames.findLastIndex(({ marker }) => marker.endsWith('['));
    if (opened < 1) return this.#pass(1);
    TARGET.lastIndex = this.#at + 1;
    const [whole = '', href = ''] = TARGET.exec(this.#text) ?? [];
    if (this.#frames[opened]?.isAlive !== true || !ALLOWED.test(href)) {
      this.#flush();
      this.#giveUp(opened);
      return this.#pass(1);
    }
    this.#flush();
    this.#close(opened, (inlines) => ({ kind: 'link', href, inlines: withoutLinks(inlines) }));
    for (const frame of this.#frames) frame.isAlive = false;
    this.#skip(1 + whole.length);
  }

  /** An address that is written out; only where no word runs into it. */
  #address(pattern: RegExp, group: number): void {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    const isInWord = group === 0 && LETTER.test(charBefore(this.#text, this.#at));
    if (found === null || isInWord) return this.#pass(1);
    const href = group === 0 ? withoutTail(found[0]) : (found[group] ?? '');
    if (href.length <= 'https://'.length && group === 0) return this.#pass(1);
    this.#flush();
    this.#add({ kind: 'link', href, inlines: [{ kind: 'text', text: href }] });
    this.#skip(group === 0 ? href.length : found[0].length);
  }

  /** Closes a frame; what was opened within it and never closed becomes text. */
  #close(at: number, partOf: (inlines: readonly Inline[]) => Inline): void {
    this.#giveUp(at + 1);
    const frame = this.#frames.pop();
    if (frame !== undefined) this.#add(partOf(frame.inlines));
  }

  /** Makes text of the markers of all frames from one on. */
  #giveUp(from: number): void {
    while (this.#frames.length > from) {
      const frame = this.#frames.pop();
      if (frame === undefined) return;
      this.#add({ kind: 'text', text: frame.marker });
      for (const inline of frame.inlines) this.#add(inline);
    }
  }
}

/** Adds a part; text joins the text before it. */
function addTo(inlines: Inline[], inline: Inline): void {
  const last = inlines.at(-1);
  if (inline.kind !== 'text' || last?.kind !== 'text') {
    if (inline.kind !== 'text' || inline.text !== '') inlines.push(inline);
  } else inlines[inlines.length - 1] = { kind: 'text', text: last.text + inline.text };
}

function emphasized(length: number, inlines: readonly Inline[]): Inline {
  if (length === 3) return { kind: 'strong', inlines: [{ kind: 'emphasis', inlines }] };
  return { kind: length === 2 ? 'strong' : 'emphasis', inlines };
}

function withoutLinks(inlines: readonly Inline[]): readonly Inline[] {
  return inlines.flatMap((each) => {
    if (each.kind === 'link') return each.inlines;
    return each.kind === 'strong' || each.kind === 'emphasis'
      ? [{ kind: each.kind, inlines: withoutLinks(each.inlines) }]
      : [each];
  });
}

/** Starts of all runs of backticks by length, the last first. */
function ticksIn(text: string): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const { index, 0: run } of [...text.matchAll(/`+/g)].reverse()) {
    const starts = found.get(run.length);
    if (starts === undefined) found.set(run.length, [index]);
    else starts.push(index);
  }
  return found;
}

/** Underscores within a word are part of it. */
function mayOpen(sign: string, before: string, after: string): boolean {
  return /\S/.test(after) && !(sign === '_' && LETTER.test(before));
}

function mayClose(sign: string, before: string, after: string): boolean {
  return /\S/.test(before) && !(sign === '_' && LETTER.test(after));
}

function runAt(text: string, at: number, sign: string): number {
  let end = at;
  while (text[end] === sign) end += 1;
  return end - at;
}

function charBefore(text: string, at: number): string {
  return at === 0 ? ' ' : (text[at - 1] ?? ' ');
}

function charAfter(text: string, at: number): string {
  return text[at] ?? ' ';
}

/** Without the signs that end a sentence rather than an address. */
function withoutTail(address: string): string {
  let end = address.length;
  while (end > 0 && ".,;:!?'*_".includes(address[end - 1] ?? '')) end -= 1;
  return address.slice(0, end);
}
