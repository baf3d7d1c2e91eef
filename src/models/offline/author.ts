/** The offline model as an author. */
import type { ModelRequest, PromptInput, ToolRound } from '../port.js';
import type { Mind } from './mind.js';
import { mindOf } from './mind.js';
import type { DraftPart } from './parts.js';
import { CRITIC, excerpt, joined, PARTS, requestFor, SECTIONS } from './parts.js';

const SIGNATURE = /^\*Written by the offline model\b[^\n]*\n?/gm;
const TAKEN_UP = 'Feedback taken up';
const LOOKED_UP = 'Looked up';

/**
 * The next draft. An existing one, whoever wrote it, is kept; to an empty one the first two parts are added, else those
 * its critic asked for. What others said, and what tools have found, is listed in a section each, and the last line names
 * the author; all three replace those of the draft before, so that drafts do not grow without new feedback.
 *
 * After a panel, the best answer is kept and gets the parts that only others have. A member of a panel adds the sections of
 * its mind.
 */
export function draftOf(request: ModelRequest): string {
  const { promptInput, rounds = [] } = request;
  const title = excerpt(promptInput.topic, 60) || 'a text without words';
  const found = quotes(rounds);
  const others = promptInput.feedback.filter((text) => !text.includes(CRITIC) && text.trim() !== '').slice(-3);
  const base = bestAnswer(promptInput) ?? promptInput.draft;
  const text = base === null ? '' : bounded(withoutOwn(base, found.length === 0 ? [TAKEN_UP] : [TAKEN_UP, LOOKED_UP]));
  return joined([
    partsToAdd(request, text).reduce((body, part) => part.addTo(body, title), text),
    others.length === 0 ? '' : `## ${TAKEN_UP}\n\n${others.map((each) => `- ${excerpt(each, 120)}`).join('\n')}`,
    found.length === 0
      ? ''
      : `## ${LOOKED_UP}\n\nQuoted by the offline model, which has not understood it:\n\n${found.join('\n')}`,
    `*Written by the offline model${author(promptInput)}. No language model was asked.*`,
  ]);
}

function partsToAdd(request: ModelRequest, text: string): readonly DraftPart[] {
  const { promptInput } = request;
  const asked = promptInput.feedback.filter((each) => each.includes(CRITIC)).join('\n');
  const answers = joinedAnswers(promptInput) ?? '';
  if (text === '' && promptInput.role === 'panel') return [...PARTS.slice(0, 1), ...sectionsOf(mindOf(request))];
  if (text === '') return PARTS.slice(0, 2);
  const own = promptInput.role === 'panel' ? sectionsOf(mindOf(request)) : [];
  return PARTS.filter(
    (part) => !part.isIn(text) && (asked.includes(requestFor(part)) || part.isIn(answers) || own.includes(part)),
  );
}

/** The section of a mind; of every second mind also the next one. */
function sectionsOf({ index }: Mind): readonly DraftPart[] {
  return [...SECTIONS, ...SECTIONS].slice(index, index + 1 + (index % 2));
}

/** Its label and instructions; of a panel's member neither, because readers of its answer must not know it. */
function author({ role, label, systemPrompt }: PromptInput): string {
  if (role === 'panel') return '';
  const instruction = systemPrompt.trim() === '' ? '' : `, told "${excerpt(systemPrompt, 50)}"`;
  return ` as ${excerpt(label, 40)}${instruction}`;
}

/** The answer that reviewers found best, or the first one shown, or null without answers. */
function bestAnswer({ answers = [], ranking = [] }: PromptInput): string | null {
  const best = ranking[0]?.letter;
  return (answers.find(({ letter }) => letter === best) ?? answers[0])?.text ?? null;
}

/** All answers of a panel as one text, or null without answers. */
export function joinedAnswers({ answers }: PromptInput): string | null {
  return answers === undefined ? null : joined(answers.map(({ text }) => text));
}

/** The results of tools as lines of a list: the beginning of each quote, with the mark or URL to cite it by. */
function quotes(rounds: readonly ToolRound[]): readonly string[] {
  return rounds
    .flatMap(({ exchanges }) => exchanges)
    .flatMap(({ call, result }) => {
      const found = [...result.matchAll(QUOTES)].slice(0, 3);
      if (found.length === 0) return [`- Asked ${call.name}, got nothing to quote.`];
      return found.map(([, cite = '', text = '']) => `- "${excerpt(text, 120)}" ${cite}`);
    });
}

/** Quotes in a tool's result, each between tags that its text cannot close. */
const QUOTES = /<(?:passage|page) cite="([^"]*)"[^>]*>\n([^]*?)\n<\/(?:passage|page)>/g;

/** A draft without what its author adds each time. At most one empty line between paragraphs, none around it. */
function withoutOwn(draft: string, headings: readonly string[]): string {
  const stripped = [SIGNATURE, ...headings.map((heading) => new RegExp(`^## ${heading}\n(?:(?!#)[^\n]*\n?)*`, 'gm'))];
  return stripped
    .reduce((text, own) => text.replace(own, ''), draft.toWellFormed())
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
    .trimEnd();
}

/** A long draft loses repeated paragraphs first: joined drafts of branches would double each round. */
function bounded(draft: string): string {
  if (draft.length <= REPEATING_CHARS) return draft;
  const distinct = [...new Set(draft.split('\n\n'))].join('\n\n');
  if (distinct.length <= KEPT_CHARS) return distinct;
  return `${distinct.slice(0, KEPT_CHARS).toWellFormed().trimEnd()}\n\n[The offline model has cut the rest.]`;
}

/** In UTF-16 units: a shorter draft may repeat itself on purpose; of a longer one what is kept fits at six bytes each. */
const [REPEATING_CHARS, KEPT_CHARS] = [4_000, 16_000];
