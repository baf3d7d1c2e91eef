/** What the offline author can see of a topic without understanding it: an excerpt and its leading words. */

/** A topic prepared for use in running text. Every text in it is one line and well-formed. */
export interface TopicView {
  readonly title: string;
  /** The topic in quotes, or words that stand for it when nothing of it can be seen. */
  readonly about: string;
  /** Up to three of its words in the order they stand there; the title when it has none, nothing when nothing shows. */
  readonly terms: readonly string[];
}

/** Looks at a topic of any length and language. */
export function viewTopic(topic: string): TopicView {
  const line = oneLine(topic);
  if (!VISIBLE.test(line)) return { title: 'A topic without words', about: 'a text without words', terms: [] };
  const title = excerpt(line, 60);
  const words = new Set(line.match(WORDS)?.filter((word) => !COMMON.has(word.toLowerCase())));
  const longest = [...words].sort((a, b) => b.length - a.length).slice(0, 3);
  const terms = [...words].filter((word) => longest.includes(word)).map((word) => excerpt(word, 24));
  return { title, about: `"${title}"`, terms: terms.length === 0 ? [title] : terms };
}

/** A text on one line, cut to a number of code points; what was cut shows as an ellipsis. */
export function excerpt(text: string, codePoints: number): string {
  // Two UTF-16 units a code point, and one code point more to see whether something is cut.
  const points = [...oneLine(text).slice(0, 2 * codePoints + 2)];
  if (points.length <= codePoints) return points.join('');
  return `${points
    .slice(0, codePoints - 1)
    .join('')
    .trimEnd()}…`;
}

function oneLine(text: string): string {
  return text.toWellFormed().replace(BLANKS, ' ').trim();
}

const BLANKS = /[\p{Z}\p{Cc}]+/gu;
/** Anything but spaces, control and format characters. */
const VISIBLE = /[^\p{Z}\p{Cc}\p{Cf}]/u;
const WORDS = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu;

/** Words of a question rather than of its matter. English only: elsewhere the longest words have to do. */
const COMMON: ReadonlySet<string> = new Set(
  (
    'a about an and any are as at be because been between but by can could did do does explain for from had has have ' +
    'how if in instead into is it its less more most no not of on or our please should so some than that the their ' +
    'them then there these they this those through to until was we were what when where whether which while who why ' +
    'will with within without would write you your'
  ).split(' '),
);
