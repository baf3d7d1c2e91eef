/** The sections that the offline critic looks for and the offline author can write, and the critic's rules. */

/** A section under its own heading. */
export interface Section {
  /** The heading's text; the section stands under the line `## <heading>`. */
  readonly heading: string;
  /**
   * The section's text for a topic; `about` is its name in running text, `terms` its leading words, which are shown in
   * quotes.
   */
  readonly write: (about: string, terms: readonly string[]) => string;
}

/** The first section of every draft of the offline author. */
export const SUMMARY: Section = {
  heading: 'In short',
  write: (about, terms) =>
    `The topic is ${about}. Before anything is decided, the council has to agree on what is meant by ${listed(terms)}, ` +
    'for whom it matters, and how one would see that it worked.',
};

/** Added when a critic asks for them. */
export const SECTIONS: readonly Section[] = [
  SUMMARY,
  {
    heading: 'An example',
    write: (about, terms) =>
      `Take one small case of ${about}: a single place, a single week, a handful of people. Write down what changes for ` +
      `them when ${listed(terms.slice(0, 1))} is taken seriously, and what stays as it was.`,
  },
  {
    heading: 'Objections',
    write: () =>
      '- It costs something: who pays, and what is not done instead?\n' +
      '- It may not last: what keeps it going once the first interest has faded?',
  },
  {
    heading: 'Next step',
    write: () => 'Try it once, on the smallest scale that still teaches something, and look at the result together.',
  },
];

/** Whether a draft holds the section, at any place: drafts of parallel branches are joined one below the other. */
export function hasSection(draft: string, { heading }: Section): boolean {
  return draft.split('\n').some((line) => line.trimEnd() === `## ${heading}`);
}

/** Whether a draft holds a title: a line that begins with `# ` and goes on. */
export function hasTitle(draft: string): boolean {
  return draft.split('\n').some((line) => line.startsWith('# ') && line.trim() !== '#');
}

/** How the critic asks for a section; the author searches for exactly this text. */
export function requestFor({ heading }: Section): string {
  return `Add the section "${heading}".`;
}

/** How the critic asks for a title. */
export const TITLE_REQUEST = 'Add a title.';

/** How every feedback of the offline critic begins. */
export const CRITIC_SIGNATURE = 'Offline critic, by fixed rules:';

function listed(terms: readonly string[]): string {
  const quoted = terms.map((term) => `"${term}"`);
  const last = quoted.pop();
  if (last === undefined) return 'it';
  return quoted.length === 0 ? last : `${quoted.join(', ')} and ${last}`;
}

/** What the offline critic answers, before it becomes JSON. */
export interface OfflineCritique {
  readonly score: number;
  readonly feedback: string;
}

/**
 * Scores a draft by its form, never by its content: 4 points for any text and one each for a title and the sections
 * "In short", "An example", "Objections" and "Next step"; 0 without a draft, 10 never. The feedback states
 * the rule and asks for the first two parts that are missing, so a draft gains at most 2 points a round.
 */
export function critiqueOffline(draft: string | null): OfflineCritique {
  if (draft === null || draft.trim() === '') return { score: 0, feedback: `${CRITIC_SIGNATURE} there is no draft.` };
  const missing = [
    ...(hasTitle(draft) ? [] : [TITLE_REQUEST]),
    ...SECTIONS.filter((part) => !hasSection(draft, part)).map(requestFor),
  ];
  const score = POINTS_FOR_TEXT + PARTS - missing.length;
  const wanted = missing.length === 0 ? 'Nothing is missing by these rules.' : missing.slice(0, 2).join(' ');
  return { score, feedback: `${CRITIC_SIGNATURE} ${RULE} That makes ${score} of 10. ${wanted}` };
}

const POINTS_FOR_TEXT = 4;
const PARTS = 1 + SECTIONS.length;
const RULE =
  `${POINTS_FOR_TEXT} points for a text, 1 each for a title and for the sections ` +
  `${SECTIONS.map(({ heading }) => `"${heading}"`).join(', ')}.`;
