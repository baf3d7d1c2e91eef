import { CRITIC_SIGNATURE, hasSection, hasTitle, requestFor, SECTIONS, TITLE_REQUEST } from './offline-parts.js';

/** What the offline critic answers, before it becomes JSON. */
export interface OfflineCritique {
  readonly score: number;
  readonly feedback: string;
}

/**
 * Scores a draft by what it holds, never by what it says: 4 points for a text at all and one each for a title and the
 * sections "In short", "An example", "Objections" and "Next step"; 0 without a draft, 10 never. The feedback states
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
