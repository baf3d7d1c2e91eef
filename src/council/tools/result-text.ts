/** Renders what a tool has found as data: each item between tags that nothing inside can close. */

/** An item found: the attributes of its opening tag, and its text. */
export interface FoundItem<Hit> {
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
  readonly hit: Hit;
}

/**
 * As many items as fit, in order, each as `<tag name="value">`, text, `</tag>`. What does not fit is left out whole;
 * only a first item longer than all the room is cut.
 *
 * @param maxBytes room for the whole text, in bytes of UTF-8
 */
export function renderItems<Hit>(
  tag: 'passage' | 'page',
  items: readonly FoundItem<Hit>[],
  maxBytes: number,
): { readonly text: string; readonly hits: readonly Hit[] } {
  const written: string[] = [];
  const hits: Hit[] = [];
  let room = maxBytes;
  for (const { attributes, text, hit } of items) {
    const [head, body, tail] = [opening(tag, attributes), escaped(text), `\n</${tag}>`];
    const bodyRoom = room - byteLength(head) - byteLength(tail) - BETWEEN.length;
    if (bodyRoom < byteLength(body) && (hits.length > 0 || bodyRoom < MIN_CUT_BYTES)) break;
    const whole = `${head}${cutTo(body, bodyRoom)}${tail}`;
    room -= byteLength(whole) + BETWEEN.length;
    written.push(whole);
    hits.push(hit);
  }
  if (items.length === 0) return { text: 'Nothing was found.', hits };
  return { text: hits.length === 0 ? 'There is no room left for what was found.' : written.join(BETWEEN), hits };
}

function opening(tag: string, attributes: Readonly<Record<string, string>>): string {
  const shown = Object.entries(attributes).map(([name, value]) => ` ${name}="${attributeText(value)}"`);
  return `<${tag}${shown.join('')}>\n`;
}

/** On one line, without what ends an attribute or a tag. */
function attributeText(value: string): string {
  return value
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/["<>]/g, "'");
}

/**
 * Well-formed, without tags of ours: `<` before such a name becomes `&lt;`, those of a prompt's sections too, so that
 * it is as long here as where it is shown. Models read a tag with a few blanks in it as one. Linear in the text.
 */
function escaped(text: string): string {
  return text.toWellFormed().replace(OUR_TAGS, '&lt;');
}

const OUR_TAGS = /<(?=[\s/]{0,8}(?:passage|page|tool_result|topic|draft|feedback)\b)/gi;

/** The beginning of a text that takes at most so many bytes of UTF-8; cuts no character in two. */
function cutTo(text: string, maxBytes: number): string {
  if (byteLength(text) <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text).subarray(0, Math.max(0, maxBytes - CUT.length));
  // A character cut in two at the end is dropped by a decoder that expects more.
  return `${new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })}${CUT}`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

const BETWEEN = '\n\n';
const CUT = '\n[cut]';
/** Least part of an item worth showing. */
const MIN_CUT_BYTES = 200;
