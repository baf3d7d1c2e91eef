/** A draft as a tree of elements, never as HTML. */
import type { Token } from 'markdown-it';

/** Elements of a draft. Headings start at `h3` because the page uses `h1` and `h2`. */
export type DraftTag =
  | ('p' | 'h3' | 'h4' | 'h5' | 'h6' | 'blockquote' | 'ul' | 'ol' | 'li' | 'pre' | 'hr')
  | ('table' | 'thead' | 'tbody' | 'tr' | 'th' | 'td')
  | ('a' | 'strong' | 'em' | 's' | 'code' | 'br' | 'sup' | 'input')
  /** A footnote. */
  | 'aside'
  /** A mark that cites a source; `sources.ts` adds it. */
  | 'cite'
  /** A sign of a quotation that is missing; `quotations.ts` adds it. */
  | 'mark';

export interface DraftElement {
  readonly tag: DraftTag;
  readonly children: readonly DraftNode[];
  /** Of `a`: begins with `http:`, `https:` or `mailto:`. Of `cite`: a page of the console. */
  readonly href?: string;
  /** Of `a` its title, of `pre` the language of the code, of `cite` the name of the source, of `mark` what it means. */
  readonly title?: string;
  /** Of `ol`: the number of its first item. */
  readonly start?: number;
  /** Of `th` and `td`. */
  readonly align?: 'left' | 'center' | 'right';
  /** Of `input`, the checkbox of a task. */
  readonly isChecked?: boolean;
}

export type DraftNode = string | DraftElement;

/** The tree of a draft. @param tokens from `markdown.ts` */
export function draftTree(tokens: readonly Token[]): readonly DraftNode[] {
  const all: DraftNode[] = [];
  const open = [all];
  let links = 0;
  for (const [at, token] of tokens.entries()) {
    const into = open.at(-1) ?? all;
    if (token.tag === 'a') links += token.nesting;
    if (token.nesting === -1) open.pop();
    else if (token.nesting === 1) open.push(opened(token, into));
    else if (token.type === 'inline') inlineNodes(token, tokens[at - 2]).forEach((node) => add(into, node));
    else add(into, token.type === 'image' && links > 0 ? token.content : leafOf(token));
  }
  return all;
}

/** Joins adjacent texts. */
function add(into: DraftNode[], node: DraftNode): void {
  const last = into.at(-1);
  if (typeof node === 'string' && typeof last === 'string') into[into.length - 1] = last + node;
  else if (node !== '') into.push(node);
}

function inlineNodes({ children }: Token, itemStart: Token | undefined): readonly DraftNode[] {
  const nodes = draftTree(children ?? []);
  return itemStart?.type === 'list_item_open' ? itemText(nodes) : nodes;
}

/**
 * Adds an element and returns the list for its children. Paragraphs of a tight list and links without an address add no
 * element.
 */
function opened(token: Token, into: DraftNode[]): DraftNode[] {
  if (token.hidden || token.attrGet('href') === '') return into;
  const isNote = token.type === 'footnote_reference_open';
  const children: DraftNode[] = isNote ? [noteMark(token)] : [];
  into.push({ ...attributesOf(token), ...element(isNote ? 'aside' : tagOf(token), children) });
  return children;
}

function leafOf(token: Token): DraftNode {
  switch (token.type) {
    case 'softbreak':
      return '\n';
    case 'hardbreak':
    case 'hr':
      return element(tagOf(token), []);
    case 'code_inline':
      return element('code', [token.content]);
    case 'fence':
    case 'code_block':
      return { ...element('pre', [element('code', [token.content.replace(/\n$/, '')])]), ...named(token.info) };
    // The page loads nothing from other hosts, so an image becomes a link.
    case 'image':
      return linkTo(token);
    case 'footnote_ref':
      return noteMark(token);
    default:
      return token.content;
  }
}

function linkTo(image: Token): DraftNode {
  const href = String(image.attrGet('src'));
  return href === '' ? image.content : { ...attributesOf(image), ...element('a', [image.content || href]), href };
}

function named(info: string): Partial<DraftElement> {
  return info === '' ? {} : { title: info };
}

function element(tag: DraftTag, children: readonly DraftNode[]): DraftElement {
  return { tag, children };
}

const TASK = /^\[([ xX])\] /;

/** The text of an item; `[ ]` or `[x]` before it is a checkbox. */
function itemText(nodes: readonly DraftNode[]): readonly DraftNode[] {
  const [first, ...rest] = nodes;
  const [mark, sign] = typeof first === 'string' ? (TASK.exec(first) ?? []) : [];
  if (typeof first !== 'string' || mark === undefined) return nodes;
  return [{ ...element('input', []), isChecked: sign !== ' ' }, first.slice(mark.length), ...rest];
}

function noteMark({ meta }: Token): DraftElement {
  return element('sup', [String(meta?.['label'])]);
}

function attributesOf(token: Token): Partial<DraftElement> {
  const [href, title, start, style] = ['href', 'title', 'start', 'style'].map((name) => token.attrGet(name));
  const align = ALIGNS.find((each) => style === `text-align:${each}`);
  return {
    ...(href && { href: String(href) }),
    ...(title && { title: String(title) }),
    ...(start && { start: Number(start) }),
    ...(align && { align }),
  };
}

const ALIGNS = ['left', 'center', 'right'] as const;

function tagOf({ tag }: Token): DraftTag {
  return HEADINGS[tag] ?? TAGS.find((each) => each === tag) ?? 'p';
}

const HEADINGS: Readonly<Record<string, DraftTag>> = { h1: 'h3', h2: 'h4', h3: 'h5', h4: 'h6', h5: 'h6', h6: 'h6' };
const TAGS: readonly DraftTag[] = [
  ...(['p', 'blockquote', 'ul', 'ol', 'li', 'hr', 'br', 'a', 'strong', 'em', 's'] as const),
  ...(['table', 'thead', 'tbody', 'tr', 'th', 'td'] as const),
];
