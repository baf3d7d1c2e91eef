/** The parts of a text by which the offline model writes, scores, ranks and compares: its form, never its content. */

/** A part of a draft: how the critic finds it, and how the author adds it. */
export interface DraftPart {
  readonly name: string;
  isIn(draft: string): boolean;
  addTo(draft: string, topic: string): string;
}

/** The title and the sections of a whole draft, in the order in which they are asked for. */
export const PARTS: readonly DraftPart[] = [
  {
    name: 'a title',
    isIn: (draft) => /^# .*\S/m.test(draft),
    addTo: (draft, topic) => joined([`# ${topic}`, draft]),
  },
  section(
    'In short',
    (topic) =>
      `The topic is "${topic}". Before anything is decided, the council has to agree on what is meant by it, for whom it ` +
      'matters, and how one would see that it worked.',
  ),
  section(
    'An example',
    (topic) =>
      `Take one small case of "${topic}": a single place, a single week, a handful of people. Write down what changes ` +
      'for them when it is taken seriously, and what stays as it was.',
  ),
  section(
    'Objections',
    () =>
      '- It costs something: who pays, and what is not done instead?\n' +
      '- It may not last: what keeps it going once the first interest has faded?',
  ),
  section(
    'Next step',
    () => 'Try it once, on the smallest scale that still teaches something, and look at the result together.',
  ),
];

/** At any place of a draft: drafts of parallel branches are joined one below the other. */
function section(heading: string, write: (topic: string) => string): DraftPart {
  return {
    name: `the section "${heading}"`,
    isIn: (draft) => draft.split('\n').some((line) => line.trimEnd() === `## ${heading}`),
    addTo: (draft, topic) => joined([draft, `## ${heading}\n\n${write(topic)}`]),
  };
}

/** The sections, without the title. */
export const SECTIONS = PARTS.slice(1);

export function joined(blocks: readonly string[]): string {
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** A text on one well-formed line, cut to a number of code points; what was cut shows as an ellipsis. */
export function excerpt(text: string, codePoints: number): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Z}\p{Cc}]+/gu, ' ')
    .trim();
  // At most two UTF-16 units per code point, and one code point more to see whether something is cut.
  const points = [...line.slice(0, 2 * codePoints + 2)];
  const isWhole = points.length <= codePoints;
  return isWhole
    ? points.join('')
    : `${points
        .slice(0, codePoints - 1)
        .join('')
        .trimEnd()}…`;
}

/** The critic's request for a part. The author searches the feedback for this text. */
export function requestFor({ name }: DraftPart): string {
  return `Add ${name}.`;
}

/** First words of every critique, by which the author recognises the critic. */
export const CRITIC = 'Offline critic, by fixed rules:';
