/** Hides who wrote an answer: the order shown, and the names of models in texts (contract, section 6.4). */

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

/**
 * The names by which an answer could name its model: of each model its full name, its provider, its name, the last part of
 * a name with slashes, and the words of model families in it. Each once, in lower case, the longest first.
 *
 * @param models full names as `provider/model`
 */
export function namesToMask(models: readonly string[]): string[] {
  const names = models.flatMap((model) => {
    const full = model.toLowerCase();
    const [provider = '', ...path] = full.split('/');
    const families = FAMILIES.filter(({ inName }) => full.includes(inName)).flatMap(({ words }) => words);
    return [full, provider, path.join('/'), path.at(-1) ?? '', ...families];
  });
  const distinct = [...new Set(names)].filter((name) => /[\p{L}\p{N}]/u.test(name));
  return distinct.toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

/** Model families: the part of a model's name, and the words by which a model names itself. */
const FAMILIES: readonly { readonly inName: string; readonly words: readonly string[] }[] = [
  { inName: 'gpt', words: ['chatgpt', 'gpt'] },
  ...['claude', 'gemini', 'gemma', 'llama', 'mistral', 'mixtral', 'qwen', 'deepseek', 'grok', 'kimi', 'glm'].map(
    (word) => ({ inName: word, words: [word] }),
  ),
];

const FAMILY_WORDS: ReadonlySet<string> = new Set(FAMILIES.flatMap(({ words }) => words));

/** A text with names replaced. */
interface MaskedText {
  readonly text: string;
  /** The names found in it, in the order in which they were given. */
  readonly masked: string[];
}

/**
 * Replaces each name by `[model]` where it stands as a word, in any case. A space, dot, hyphen or underscore of a name
 * matches each of these. The word of a family is replaced with the version attached to it, such as `GPT-5.1`.
 *
 * @param names as namesToMask returns them
 */
export function maskNames(text: string, names: readonly string[]): MaskedText {
  if (names.length === 0) return { text, masked: [] };
  const found = new Set<number>();
  const masked = text.replace(patternOf(names), (_, ...groups: readonly unknown[]) => {
    found.add(groups.findIndex((group) => group !== undefined));
    return MASK;
  });
  return { text: masked, masked: names.filter((_, index) => found.has(index)) };
}

/** What stands in place of a name. */
export const MASK = '[model]';

/**
 * Matches one of the names and captures it in a group of its own. Linear: a name has a fixed length, and what follows the
 * word of a family cannot fail.
 */
function patternOf(names: readonly string[]): RegExp {
  const words = names.map((name) => {
    const letters = name.split(new RegExp(SEPARATOR, 'v')).map(escaped).join(SEPARATOR);
    const end = FAMILY_WORDS.has(name) ? VERSION : `(?!${WORD_SIGN})`;
    return `(${letters}${end})`;
  });
  return new RegExp(`(?<!${WORD_SIGN})(?:${words.join('|')})`, 'giv');
}

function escaped(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`);
}

const SEPARATOR = String.raw`[\-_. ]`;

/** A sign of a word. Scripts without spaces, or with particles joined to a name, end the word of another script. */
const WORD_SIGN =
  String.raw`[[\p{L}\p{M}\p{N}_]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}` +
  String.raw`\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]`;

/** The end of a family's word, then a version. */
const VERSION = String.raw`(?![\p{Script=Latin}_])(?:\p{N}[\p{L}\p{N}]*)?(?:[\-.][\p{L}\p{N}]+)*`;
