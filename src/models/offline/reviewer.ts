/** The offline model as a reviewer and as a judge of anonymous answers. */
import type { Analysis } from '../../generated/schemas.js';
import type { LetteredAnswer, ModelRequest } from '../port.js';
import type { Mind } from './mind.js';
import { mindOf } from './mind.js';
import type { DraftPart } from './parts.js';
import { PARTS, SECTIONS } from './parts.js';

/**
 * Ranks the responses by their form: 1 point for each part, 2 more for the section of its mind. Of equal ones, the shorter
 * goes first for every second mind and the longer for the others.
 */
export function rankingOf(request: ModelRequest): string {
  const mind = mindOf(request);
  const { answers = [] } = request.promptInput;
  const scored = answers.map((answer) => ({ ...answer, points: pointsOf(answer, mind) }));
  const lengthSign = mind.index % 2 === 0 ? 1 : -1;
  const ranked = scored.toSorted((a, b) => b.points - a.points || lengthSign * (a.text.length - b.text.length));
  const counts = ranked.map(({ letter, points }) => `Response ${letter} has ${points}`).join(', ');
  const rule = `1 point for each part, 2 more for ${mind.section.name}`;
  return JSON.stringify({
    ranking: ranked.map(({ letter }) => letter),
    comment: `Offline reviewer, by fixed rules: ${rule}. ${counts}. No language model was asked.`,
  });
}

function pointsOf({ text }: LetteredAnswer, { section }: Mind): number {
  return PARTS.filter((part) => part.isIn(text)).length + (section.isIn(text) ? 2 : 0);
}

/** Compares the responses by their form: which parts all, some, one or none of them have, and with which each begins. */
export function analysisOf({ promptInput: { answers = [] } }: ModelRequest): string {
  const found = PARTS.map((part) => ({ part, letters: lettersWith(part, answers) }));
  const heldBy = (isCount: (count: number) => boolean): typeof found =>
    found.filter(({ letters }) => isCount(letters.length));
  const analysis: Analysis = {
    consensus: heldBy((count) => count > 0 && count === answers.length).map(({ part }) => `All have ${part.name}.`),
    contradictions: beginnings(answers),
    partial_coverage: heldBy((count) => count > 1 && count < answers.length).map(({ part, letters }) => ({
      responses: letters,
      point: `They have ${part.name}.`,
    })),
    unique_insights: heldBy((count) => count === 1 && count < answers.length).flatMap(({ part, letters }) =>
      letters.map((response) => ({ response, insight: `It alone has ${part.name}.` })),
    ),
    blind_spots: [
      ...heldBy((count) => count === 0).map(({ part }) => `None has ${part.name}.`),
      'What the responses say: the offline judge compares their form by fixed rules. No language model was asked.',
    ],
  };
  return JSON.stringify(analysis);
}

function lettersWith(part: DraftPart, answers: readonly LetteredAnswer[]): string[] {
  return answers.filter(({ text }) => part.isIn(text)).map(({ letter }) => letter);
}

/** A contradiction if the responses begin with different sections. */
function beginnings(answers: readonly LetteredAnswer[]): Analysis['contradictions'] {
  const stances = answers.flatMap(({ letter, text }) => {
    const first = firstSectionOf(text);
    return first === null ? [] : [{ response: letter, stance: `It begins with ${first.name}.` }];
  });
  const distinct = new Set(stances.map(({ stance }) => stance));
  return distinct.size < 2 ? [] : [{ topic: 'Where to begin', stances }];
}

function firstSectionOf(text: string): DraftPart | null {
  for (const line of text.split('\n')) {
    const found = SECTIONS.find((part) => part.isIn(line));
    if (found !== undefined) return found;
  }
  return null;
}
