/** A stand-in for a language model: needs no network, and says in what it writes that it is none. */
import { wait } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { LanguageModel, ModelRequest, PromptInput, ToolRound, ModelUsage } from './port.js';
import { callAborted } from './port.js';

/** Its name. It is offered whatever providers are configured. */
export const OFFLINE_MODEL = 'offline-1';

export interface OfflineOptions {
  /** How long each answer takes, in milliseconds, so that a demonstration can be watched; default 0: at once. */
  readonly latencyMs?: number;
  readonly system: Pick<System, 'after'>;
}

/**
 * Deterministic: the same prompt input gives the same answer. It drafts and scores by the parts below, so that a first
 * draft earns 6 and the rework 8. Offered tools, an agent first calls each once. Model name, temperature and
 * maxOutputTokens are ignored. Usage is a token per four UTF-16 units, rounded up.
 */
export function offlineModel({ latencyMs = 0, system }: OfflineOptions): LanguageModel {
  return {
    provider: 'offline',
    defaultModel: OFFLINE_MODEL,
    async ask(request, { signal }) {
      if (latencyMs > 0) await wait(system, latencyMs, signal);
      if (signal.aborted) throw callAborted(signal);
      const { promptInput, answer, tools = [], rounds = [] } = request;
      const inputTokens = tokens(readIn(request));
      if (answer !== 'critique' && tools.length > 0 && rounds.length === 0) {
        const argumentsJson = JSON.stringify({ query: excerpt(promptInput.topic, 300) });
        const calls = tools.map(({ name }) => ({ id: `offline_${name}`, name, argumentsJson }));
        return { text: '', calls, usage: usageOf(inputTokens, tokens(JSON.stringify(calls))) };
      }
      const text = answer === 'critique' ? critiqueOf(promptInput) : draftOf(promptInput, rounds);
      for (const [word] of text.matchAll(/\s*\S+\s*/g)) request.onToken?.(word);
      return { text, usage: usageOf(inputTokens, tokens(text)) };
    },
  };
}

/** Counted here, so that nothing is unknown; the offline model costs nothing. */
function usageOf(inputTokens: number, outputTokens: number): ModelUsage {
  return { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens, reasoningTokens: 0, costUsd: 0 };
}

function readIn({ system, prompt, rounds = [] }: ModelRequest): string {
  return [system, prompt, ...rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result))].join('');
}

function tokens({ length }: string): number {
  return Math.ceil(length / 4);
}

/** A part of a draft: how the critic finds it, and how the author adds it. */
interface Part {
  readonly name: string;
  isIn(draft: string): boolean;
  addTo(draft: string, topic: string): string;
}

/** The title and the sections of a whole draft, in the order in which they are asked for. */
const PARTS: readonly Part[] = [
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
function section(heading: string, write: (topic: string) => string): Part {
  return {
    name: `the section "${heading}"`,
    isIn: (draft) => draft.split('\n').some((line) => line.trimEnd() === `## ${heading}`),
    addTo: (draft, topic) => joined([draft, `## ${heading}\n\n${write(topic)}`]),
  };
}

/** The critic's request for a part. Must match verbatim: the offline writer searches the feedback for this text. */
function requestFor({ name }: Part): string {
  return `Add ${name}.`;
}

/** First words of every critique. Must match verbatim: the offline writer recognises the offline critic by this text. */
const CRITIC = 'Offline critic, by fixed rules:';
/** Of a draft that has a text, besides one for each part. */
const POINTS_FOR_TEXT = 4;
const RULE = `${POINTS_FOR_TEXT} points for a text, 1 each for ${PARTS.map(({ name }) => name).join(', ')}.`;

/**
 * Scores a draft by its form, never by its content; 0 without a draft, 10 never. The feedback states the rule and asks
 * for the first two parts that are missing, so that a draft gains at most 2 points a round.
 */
function critiqueOf({ draft }: PromptInput): string {
  if (draft === null || draft.trim() === '')
    return JSON.stringify({ score: 0, feedback: `${CRITIC} there is no draft.` });
  const missing = PARTS.filter((part) => !part.isIn(draft)).map(requestFor);
  const score = POINTS_FOR_TEXT + PARTS.length - missing.length;
  const wanted = missing.length === 0 ? 'Nothing is missing by these rules.' : missing.slice(0, 2).join(' ');
  return JSON.stringify({ score, feedback: `${CRITIC} ${RULE} That makes ${score} of 10. ${wanted}` });
}

const SIGNATURE = /^\*Written by the offline model as [^\n]*\n?/gm;
const TAKEN_UP = 'Feedback taken up';
const LOOKED_UP = 'Looked up';

/**
 * The next draft. An existing one of any author is kept; to an empty one the first two parts are added, else those
 * its critic asked for. What others said, and what tools have found, is listed in a section each, and the last line names
 * the author; all three replace those of the draft before, so that drafts do not grow without new feedback.
 */
function draftOf({ topic, draft, feedback, label, systemPrompt }: PromptInput, rounds: readonly ToolRound[]): string {
  const title = excerpt(topic, 60) || 'a text without words';
  const found = quotes(rounds);
  const others = feedback.filter((text) => !text.startsWith(CRITIC) && text.trim() !== '').slice(-3);
  const asked = feedback.filter((text) => text.startsWith(CRITIC)).join('\n');
  const text =
    draft === null ? '' : bounded(withoutOwn(draft, found.length === 0 ? [TAKEN_UP] : [TAKEN_UP, LOOKED_UP]));
  const parts =
    text === '' ? PARTS.slice(0, 2) : PARTS.filter((part) => asked.includes(requestFor(part)) && !part.isIn(text));
  const instruction = systemPrompt.trim() === '' ? '' : `, told "${excerpt(systemPrompt, 50)}"`;
  return joined([
    parts.reduce((body, part) => part.addTo(body, title), text),
    others.length === 0 ? '' : `## ${TAKEN_UP}\n\n${others.map((each) => `- ${excerpt(each, 120)}`).join('\n')}`,
    found.length === 0
      ? ''
      : `## ${LOOKED_UP}\n\nQuoted by the offline model, which has not understood it:\n\n${found.join('\n')}`,
    `*Written by the offline model as ${excerpt(label, 40)}${instruction}. No language model was asked.*`,
  ]);
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

/** A draft without what its author adds anew each time. At most one empty line between paragraphs, none around it. */
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

function joined(blocks: readonly string[]): string {
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** A text on one well-formed line, cut to a number of code points; what was cut shows as an ellipsis. */
function excerpt(text: string, codePoints: number): string {
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
