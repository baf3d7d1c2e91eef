/**
 * What stands within a paragraph of a draft: emphasis, code, links. Whatever is none of it stays text, HTML too. No sign is
 * looked at from two places and nesting has a bound, so that time grows with the length of the text, however hostile it is.
 */

/** Never markup: a tree to make elements of. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis'; readonly inlines: readonly Inline[] }
  /** `href` begins with `http://`, `https://` or `mailto:`. */
  | { readonly kind: 'link'; readonly href: string; readonly inlines: readonly Inline[] }
  | { readonly kind: 'break' };

/** Deepest emphasis; what would open more stays text. */
const MOST_OPEN = 16;

/** The end of what is written as an address is none of it where it ends a sentence. */
const ADDRESS = /(?:https?:\/\/|mailto:)[^\s<>"`*[\]()\\]*[^\s<>"`*[\]()\\.,;:!?'_]/;

/** Whatever is more than text. */
const SPECIAL = new RegExp(
  [
    /\\(?<escaped>[!-/:-@[-`{-~])/,
    /(?<lineEnd>\\\n|(?<! ) {2,}\n)/,
    /(?<!`)(?<ticks>`+)(?!`)(?<code>[^`]+)\k<ticks>(?!`)/,
    // A picture is shown as a link to it. An address may hold brackets, but none within brackets.
    /!?\[(?<label>[^[\]]*)\]\((?<href>(?:https?:\/\/|mailto:)[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?: "[^"\n]*")?\)/,
    `<(?<braced>${ADDRESS.source})>`,
    `(?<![\\p{L}\\p{N}])(?<address>${ADDRESS.source})`,
    // Underscores within a word are part of it.
    /(?<marker>(?<!\*)\*{1,3}(?!\*)|(?<![\p{L}\p{N}_])_{1,3}(?!_)|(?<!_)_{1,3}(?![\p{L}\p{N}_]))/u,
  ]
    .map((each) => (typeof each === 'string' ? each : each.source))
    .join('|'),
  'giu',
);

/** Emphasis that was opened, and what it holds so far; the first holds all. */
interface Frame {
  /** As it was written; it becomes text again where nothing closes it. */
  readonly marker: string;
  readonly inlines: Inline[];
}

/** The parts of a text. */
export function inlinesOf(text: string): readonly Inline[] {
  const all: Inline[] = [];
  const frames: Frame[] = [{ marker: '', inlines: all }];
  const add = (inline: Inline): unknown => frames.at(-1)?.inlines.push(inline);
  const addText = (words: string): unknown => words !== '' && add({ kind: 'text', text: words });
  /** Makes text of the markers of all frames from one on. */
  const giveUp = (from: number): void => {
    for (const { marker, inlines } of frames.splice(from)) {
      addText(marker);
      inlines.forEach(add);
    }
  };
  let from = 0;
  for (const found of text.matchAll(SPECIAL)) {
    addText(text.slice(from, found.index));
    from = found.index + found[0].length;
    const marker = found.groups?.['marker'];
    const opened = frames.findLastIndex((frame) => frame.marker === marker);
    if (marker === undefined) add(partOf(found.groups ?? {}));
    else if (opened > 0 && isWord(text[found.index - 1])) {
      giveUp(opened + 1);
      const [frame] = frames.splice(opened);
      add(emphasized(marker.length, frame?.inlines ?? []));
    } else if (frames.length < MOST_OPEN && isWord(text[from])) frames.push({ marker, inlines: [] });
    else addText(marker);
  }
  addText(text.slice(from));
  giveUp(1);
  return all;
}

/** Emphasis begins before a word and ends behind one. */
function isWord(sign = ' '): boolean {
  return sign.trim() !== '';
}

/** What was found is a part by itself. */
function partOf({ escaped, code, label, href, braced, address }: Partial<Record<string, string>>): Inline {
  if (escaped !== undefined) return { kind: 'text', text: escaped };
  if (code !== undefined) return { kind: 'code', text: code.replaceAll('\n', ' ') };
  if (label !== undefined) return { kind: 'link', href: href ?? '', inlines: withoutLinks(inlinesOf(label)) };
  const written = braced ?? address;
  if (written === undefined) return { kind: 'break' };
  return { kind: 'link', href: written, inlines: [{ kind: 'text', text: written }] };
}

function emphasized(length: number, inlines: readonly Inline[]): Inline {
  if (length === 3) return { kind: 'strong', inlines: [{ kind: 'emphasis', inlines }] };
  return { kind: length === 2 ? 'strong' : 'emphasis', inlines };
}

function withoutLinks(inlines: readonly Inline[]): readonly Inline[] {
  return inlines.flatMap((each): readonly Inline[] => {
    if (each.kind === 'link') return each.inlines;
    return 'inlines' in each ? [{ kind: each.kind, inlines: withoutLinks(each.inlines) }] : [each];
  });
}
