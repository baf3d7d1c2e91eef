/** Text of models and users on a terminal: without the characters that would command it, or turn what is read around. */

/** Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9, section 2), and line separators. */
const TURNING = '\\u061C\\u200E\\u200F\\u2028-\\u202E\\u2066-\\u2069';
/** Controls but for line feed and tab, what turns text around, and halves of characters. */
const COMMANDING = new RegExp(`(?![\\n\\t])[\\p{Cc}\\p{Cs}${TURNING}]`, 'gu');

/** The text with each such character replaced by U+FFFD; line feed and tab stay. */
export function printable(text: string): string {
  return text.replaceAll(COMMANDING, '\uFFFD');
}

/** The same in one line: white space of any kind and length becomes a space. */
export function inOneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' ')).trim();
}

/** A JSON text with each such character, which only a string in it can hold, escaped: the same value. */
export function printableJson(json: string): string {
  return json.replaceAll(COMMANDING, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
