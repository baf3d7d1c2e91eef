/** Hides who wrote an answer: the order shown, and the names by which it presents its author (contract, section 6.4). */
import { labelInOneLine } from '../../graph/label.js';

/** Who reads the answers of a panel. */
export interface Reader {
  /** Id of the run whose stream holds the reader's `NodeStarted`. */
  readonly runId: string;
  /** The reader's own step. */
  readonly step: number;
  /** The reader's id as a member; the node's id for a judge, an agent or a critic. */
  readonly reviewer: string;
}

/**
 * The members in the order in which a reader sees their answers: by the SHA-256 of run, step, reader and member, each on a
 * line. The first is Response A.
 *
 * @param sha256 in hexadecimal digits
 */
export function orderShown(
  { runId, step, reviewer }: Reader,
  members: readonly string[],
  sha256: (text: string) => string,
): string[] {
  const keyed = members.map((member) => ({ member, key: sha256(`${runId}\n${step}\n${reviewer}\n${member}`) }));
  return keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(({ member }) => member);
}

/** The letter of the answer at an index, from 0 to 25. */
export function letterAt(index: number): string {
  return String.fromCodePoint(FIRST_LETTER + index);
}

/** The index of a letter. */
export function indexOfLetter(letter: string): number {
  return letter.charCodeAt(0) - FIRST_LETTER;
}

/** `A`, `A and B`, `A, B and C`. */
export function enumerated(items: readonly string[], conjunction = 'and'): string {
  const parts = [items.slice(0, -1).join(', '), ...items.slice(-1)];
  return parts.filter((part) => part !== '').join(` ${conjunction} `);
}

const FIRST_LETTER = 'A'.charCodeAt(0);

/** The member that wrote an answer. */
export interface Author {
  /** Its id. */
  readonly member: string;
  readonly label: string;
  /** `provider/model` that wrote the answer, or null if that was not recorded. */
  readonly model: string | null;
}

/** A text with names replaced. */
export interface MaskedText {
  readonly text: string;
  /** The names found in it, in lower case. */
  readonly masked: readonly string[];
}

/** What stands in place of a name. */
const MASK = '[model]';

/**
 * An answer without the names by which it presents its author (contract, section 6.4): the member's model, provider, label
 * and id, in any case, where the text says "As X, I", "I am X", "X here" or "known as X", or has X alone as a heading or as
 * its last line. A model's name may end early, as in "Claude" for `claude-sonnet-4`. Every other word stays, because an
 * answer may be about what a member is called after: OpenAI, command, solar.
 *
 * @param others the topic and the other answers. A name that stands in one of them is a word of the matter, because members
 * do not know each other, and stays
 */
export function withoutAuthor(answer: string, author: Author, others: readonly string[]): MaskedText {
  const names = namesOf(author).filter((name) => new RegExp(patternOf(name), 'iv').test(answer));
  // Most answers name no author. The patterns with signs of words take milliseconds to compile for each author.
  if (names.length === 0) return { text: answer, masked: [] };
  const found = new Map<string, boolean>();
  const isHidden = (name: string): boolean => {
    const known = found.get(name) ?? !others.some((other) => standsIn(name, other));
    found.set(name, known);
    return known;
  };
  const alternatives = names.map((name) => `(${patternOf(name)})`).join('|');
  const text = PRESENTATIONS.reduce((before, [lead, end]) => {
    const presented = new RegExp(`(${lead})(?:${alternatives})(?=${end})`, 'gimv');
    return before.replace(presented, (whole: string, led: string, ...groups: readonly unknown[]) => {
      const name = names[groups.findIndex((group) => group !== undefined)];
      return name !== undefined && isHidden(name) ? `${led}${MASK}` : whole;
    });
  }, answer);
  return { text, masked: [...found].flatMap(([name, hidden]) => (hidden ? [name] : [])) };
}

/** The names of an author in lower case, the longest first. */
function namesOf({ member, label, model }: Author): readonly string[] {
  const [provider = '', ...path] = model === null || !model.includes('/') ? ['', model ?? ''] : model.split('/');
  const words = wordsOf(path.at(-1) ?? '');
  const beginnings = words.map((_, index) => words.slice(0, index + 1).join(' '));
  const names = [member, labelInOneLine(label), model ?? '', provider, path.join('/')];
  const all = [...names, ...beginnings.filter((each) => each.length >= MIN_BEGINNING)];
  const distinct = new Map(all.toReversed().map((name) => [wordsOf(name.toLowerCase()).join(' '), name.toLowerCase()]));
  distinct.delete('');
  return [...distinct.values()].toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

/** Fewest letters of a name that ends early: the `o` of `o3` and the `r` of `r1` name no model. */
const MIN_BEGINNING = 3;

/** Whether a name stands in a text as a word. */
function standsIn(name: string, text: string): boolean {
  return new RegExp(`${WORD_BEGINS}${patternOf(name)}(?!${WORD_SIGN})`, 'iv').test(text);
}

/** Matches a name. A space, dot, hyphen, colon or underscore of a name matches each of these, or none of them. */
function patternOf(name: string): string {
  return wordsOf(name)
    .map(escaped)
    .join(String.raw`[ .\-:_]{0,3}`);
}

function wordsOf(name: string): readonly string[] {
  return name.split(/[\s.\-:_]+|(?<=\p{L})(?=\p{N})/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
}

/** A text that a regular expression with the flag `u` or `v` matches letter by letter. */
function escaped(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
}

/** A sign of a word. Scripts without spaces, or with particles joined to a name, end the word of another script. */
const WORD_SIGN =
  String.raw`[[\p{L}\p{M}\p{N}_]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}` +
  String.raw`\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]`;

const WORD_BEGINS = `(?<!${WORD_SIGN})`;

/** Quotation marks and emphasis before and after a name. */
const OPEN = '[*_`"\'“‘«]{0,3}';
const CLOSE = '[*_`"\'”’»]{0,3}';

/** What follows a name that closes its phrase. "I am solar powered" and "I am Kim's friend" go on. */
const PHRASE_ENDS =
  String.raw`(?:[–—]|[^\p{L}\p{M}\p{N}\s](?!${WORD_SIGN})|[ \t]{1,3}[^\p{L}\p{M}\p{N}\s]|[ \t]{0,8}$` +
  String.raw`|[ \t]{1,3}(?:and|but|by|from|of|here|speaking|writing|who|with)(?!${WORD_SIGN}))`;

const LINE_ENDS = String.raw`[*_\`"'”’»:.]{0,4}[ \t]{0,8}#{0,6}[ \t]{0,8}$`;

/**
 * How an answer presents its author: what stands before the name, and what follows. Linear, because no part before a name
 * has a length of its own.
 */
const PRESENTATIONS: readonly (readonly [lead: string, end: string])[] = [
  [`${WORD_BEGINS}(?<!(?:such|well) )as {1,3}(?:the )??${OPEN}`, `${CLOSE},? {1,3}I(?!${WORD_SIGN})`],
  [`${WORD_BEGINS}I(?: {1,3}am|['’]m) {1,3}(?:the )??${OPEN}`, PHRASE_ENDS],
  [`${WORD_BEGINS}known {1,3}as {1,3}(?:the )??${OPEN}`, PHRASE_ENDS],
  [`(?:^|[.!?,:] {1,3})${OPEN}`, `${CLOSE} {1,3}here${PHRASE_ENDS}`],
  // A heading.
  [`^ {0,3}#{1,6} {1,3}${OPEN}`, LINE_ENDS],
  [String.raw`^ {0,3}(?:\*\*|__)`, String.raw`:?(?:\*\*|__):?[ \t]{0,8}$`],
  [`^ {0,3}${OPEN}`, `${CLOSE}[ \t]{0,8}\n {0,3}(?:=+|-+)[ \t]{0,8}$`],
  // The last line.
  [String.raw`^ {0,3}[\-–—~>]{0,3} {0,3}` + OPEN, String.raw`${CLOSE}[.!]?${CLOSE}\s*(?![^])`],
];
