/** The feedback of a jury as one text. */
import { codePoints, MAX_FEEDBACK_CHARS } from '../../graph/limits.js';
import { labelInOneLine } from '../../graph/label.js';
import { cutAtSentence } from '../cut.js';

/**
 * The feedback of each member under its label. Longer ones are cut at a sentence, so that together they fit the limit of one
 * feedback; what short ones leave is shared among the others.
 */
export function juryFeedback(
  given: readonly { readonly label: string; readonly text: string }[],
  limit = MAX_FEEDBACK_CHARS,
): string {
  const spoken = given.filter(({ text }) => text.trim() !== '');
  const headings = spoken.map(({ label }) => `## ${labelInOneLine(label)}\n`);
  const between = 2 * Math.max(0, spoken.length - 1);
  const room = limit - headings.reduce((sum, heading) => sum + codePoints(heading), between);
  const share = shareOf(
    spoken.map(({ text }) => codePoints(text)),
    Math.max(room, spoken.length),
  );
  return cutAtSentence(
    spoken.map(({ text }, index) => `${headings[index]}${cutAtSentence(text, share)}`).join('\n\n'),
    limit,
  );
}

/** The most that each of these lengths may have, so that they fit together. */
function shareOf(lengths: readonly number[], room: number): number {
  let left = room;
  const sorted = [...lengths].sort((a, b) => a - b);
  for (const [index, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (length > share) return Math.max(1, share);
    left -= length;
  }
  return Math.max(1, ...lengths);
}
