/** A stand-in for a language model: needs no network, and says in what it writes that it is none. */
import { wait } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { LanguageModel, ModelRequest, ModelUsage } from './port.js';
import { callAborted } from './port.js';
import { draftOf, joinedAnswers } from './offline/author.js';
import { OFFLINE_MODEL, criticMindOf } from './offline/mind.js';
import { excerpt, CRITIC, PARTS, requestFor } from './offline/parts.js';
import { sampleOf } from './offline/sample.js';
import { analysisOf, rankingOf } from './offline/reviewer.js';

export { OFFLINE_MODEL } from './offline/mind.js';

export interface OfflineOptions {
  /** How long each answer takes, in milliseconds, so that a demonstration can be watched; default 0: at once. */
  readonly latencyMs?: number;
  readonly system: Pick<System, 'after'>;
}

/**
 * Deterministic: the same request gives the same answer. It drafts, scores, ranks and compares by the parts of a text, so
 * that a first draft earns 6 and the rework 8. Offered tools, an agent first calls each once. The members of a panel, rank or
 * jury differ by their minds. maxOutputTokens is ignored. Usage is a token per four UTF-16 units, rounded up.
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
      if (answer === 'draft' && tools.length > 0 && rounds.length === 0) {
        const argumentsJson = JSON.stringify({ query: excerpt(promptInput.topic, 300) });
        const calls = tools.map(({ name }) => ({ id: `offline_${name}`, name, argumentsJson }));
        return { text: '', calls, usage: usageOf(inputTokens, tokens(JSON.stringify(calls))) };
      }
      const text = ANSWERS[answer](request);
      for (const [word] of text.matchAll(/\s*\S+\s*/g)) request.onToken?.(word);
      return { text, usage: usageOf(inputTokens, tokens(text)) };
    },
  };
}

/** Counted here, so that nothing is unknown; the offline model costs nothing. */
function usageOf(inputTokens: number, outputTokens: number): ModelUsage {
  return { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens, reasoningTokens: 0, costUsd: 0 };
}

/** The text for each kind of answer that is asked for. */
const ANSWERS: Readonly<Record<ModelRequest['answer'], (request: ModelRequest) => string>> = {
  draft: draftOf,
  critique: critiqueOf,
  ranking: rankingOf,
  analysis: analysisOf,
  output: ({ promptInput: { schema, draft, topic } }) => JSON.stringify(sampleOf(schema, excerpt(draft ?? topic, 200))),
};

function readIn({ system, material = '', prompt, rounds = [] }: ModelRequest): string {
  return [system, material, prompt, ...rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result))].join(
    '',
  );
}

function tokens({ length }: string): number {
  return Math.ceil(length / 4);
}

/** Of a draft that has a text, besides one for each part. */
const POINTS_FOR_TEXT = 4;
const RULE = `${POINTS_FOR_TEXT} points for a text, 1 each for ${PARTS.map(({ name }) => name).join(', ')}.`;

/**
 * Scores a draft by its form, never by its content; 0 without a draft, 10 never. The feedback states the rule and asks
 * for the first two parts that are missing, so that a draft gains at most 2 points a round. A mind other than the first
 * takes a point off if its section is missing, and asks for it first.
 */
export function critiqueOf(request: ModelRequest): string {
  const draft = joinedAnswers(request.promptInput) ?? request.promptInput.draft;
  if (draft === null || draft.trim() === '')
    return JSON.stringify({ score: 0, feedback: `${CRITIC} there is no draft.` });
  const { index, section } = criticMindOf(request);
  const isMissed = index > 0 && !section.isIn(draft);
  const absent = PARTS.filter((part) => !part.isIn(draft));
  const missing = (isMissed ? [section, ...absent.filter((part) => part !== section)] : absent).map(requestFor);
  const score = POINTS_FOR_TEXT + PARTS.length - missing.length - (isMissed ? 1 : 0);
  const wanted = missing.length === 0 ? 'Nothing is missing by these rules.' : missing.slice(0, 2).join(' ');
  const rule = isMissed ? `${RULE} 1 less without ${section.name}.` : RULE;
  return JSON.stringify({ score, feedback: `${CRITIC} ${rule} That makes ${score} of 10. ${wanted}` });
}
