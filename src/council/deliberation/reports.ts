/** Rankings and analyses as plain text for prompts. */
import type { Analysis } from '../../generated/schemas.js';
import type { PromptInput } from '../../models/port.js';
import { enumerated } from './anonymity.js';

/** One line for each response, best first. */
export function rankingText(ranking: NonNullable<PromptInput['ranking']>): string {
  return ranking
    .map(({ letter, points }, index) => `${index + 1}. Response ${letter}: ${Number(points.toFixed(2))} points`)
    .join('\n');
}

/** A heading and a list for each field that is not empty. */
export function analysisText(analysis: Analysis): string {
  const lists: readonly (readonly [heading: string, items: readonly string[]])[] = [
    ['The responses agree on', analysis.consensus],
    [
      'They contradict each other on',
      analysis.contradictions.map(({ topic, stances }) =>
        [topic, ...stances.map(({ response, stance }) => `  - ${named([response])}: ${stance}`)].join('\n'),
      ),
    ],
    ['Covered by some', analysis.partial_coverage.map(({ responses, point }) => `${named(responses)}: ${point}`)],
    ['Seen by one alone', analysis.unique_insights.map(({ response, insight }) => `${named([response])}: ${insight}`)],
    ['Covered by none', analysis.blind_spots],
  ];
  const parts = lists.filter(([, items]) => items.length > 0);
  if (parts.length === 0) return 'The judge found nothing to report.';
  return parts.map(([heading, items]) => `${heading}:\n${items.map((item) => `- ${item}`).join('\n')}`).join('\n\n');
}

/** Responses by their letters; an answer that the reader does not see has none. */
function named(responses: readonly string[]): string {
  const letters = responses.filter((each) => each.length === 1);
  const others = responses.filter((each) => each.length > 1);
  const word = letters.length === 0 ? '' : letters.length === 1 ? 'Response ' : 'Responses ';
  const text = `${word}${enumerated([...letters, ...others])}`;
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
