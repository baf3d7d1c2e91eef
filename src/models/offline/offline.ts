/** A stand-in for a language model that needs no network and says so in its drafts. */
import type { System } from '../../system/system.js';
import type { PromptInput, LanguageModel, ModelRequest, ToolCall, ToolDeclaration, ToolRound } from '../port.js';
import { callAborted } from '../port.js';
import { draftOffline, excerpt } from './author.js';
import { critiqueOffline } from './critic.js';

export interface OfflineOptions {
  /** How long each answer takes, in milliseconds, so that a demonstration can be watched; default 0: at once. */
  readonly latencyMs?: number;
  readonly system: Pick<System, 'after'>;
}

/**
 * The offline model: deterministic, the same prompt input gives the same answer. It drafts and scores by the rules
 * stated in draftOffline and critiqueOffline, so a first draft earns 6, the rework 8. Offered tools, an agent first
 * calls each once. It ignores model name, temperature and maxOutputTokens. Usage is a token per four UTF-16 units,
 * rounded up.
 */
export function offlineModel({ latencyMs = 0, system }: OfflineOptions): LanguageModel {
  return {
    provider: 'offline',
    defaultModel: 'offline-1',
    async ask(request, { signal }) {
      await pause(latencyMs, signal, system);
      const { system: instructions, prompt, promptInput, answer, tools = [], rounds = [] } = request;
      const inputTokens = tokens(instructions.length + prompt.length + lengthOf(rounds));
      if (answer === 'text' && tools.length > 0 && rounds.length === 0) {
        const calls = callsOffline(tools, promptInput);
        return { text: '', calls, usage: { inputTokens, outputTokens: tokens(JSON.stringify(calls).length) } };
      }
      const text =
        answer === 'critique'
          ? JSON.stringify(critiqueOffline(promptInput.draft))
          : draftOffline(promptInput, lookedUp(rounds));
      for (const [word] of text.matchAll(WORDS)) request.onToken?.(word);
      return { text, usage: { inputTokens, outputTokens: tokens(text.length) } };
    },
  };
}

function lengthOf(rounds: NonNullable<ModelRequest['rounds']>): number {
  return rounds.flatMap(({ exchanges }) => exchanges).reduce((sum, { result }) => sum + result.length, 0);
}

async function pause(delayMs: number, signal: AbortSignal, system: Pick<System, 'after'>): Promise<void> {
  if (signal.aborted) throw callAborted(signal);
  if (delayMs <= 0) return;
  await new Promise<void>((resolve, reject) => {
    const giveUp = (): void => {
      cancel();
      reject(callAborted(signal));
    };
    const cancel = system.after(delayMs, () => {
      signal.removeEventListener('abort', giveUp);
      resolve();
    });
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

function tokens(chars: number): number {
  return Math.ceil(chars / 4);
}

/** Splits a text into tokens, as a streaming model might send it. */
const WORDS = /\s*\S+\s*/g;

/** The calls made before drafting: one of each tool with the topic, all at once. */
function callsOffline(tools: readonly ToolDeclaration[], { topic }: PromptInput): readonly ToolCall[] {
  const argumentsJson = JSON.stringify({ query: excerpt(topic, 300) });
  return tools.map(({ name }) => ({ id: `offline_${name}`, name, argumentsJson }));
}

/** The results as lines of a list: the beginning of each quote, with the mark or URL to cite it by. */
function lookedUp(rounds: readonly ToolRound[]): readonly string[] {
  return rounds
    .flatMap(({ exchanges }) => exchanges)
    .flatMap(({ call, result }) => {
      const quotes = [...result.matchAll(QUOTES)].slice(0, SHOWN_QUOTES);
      if (quotes.length === 0) return [`- Asked ${call.name}, got nothing to quote.`];
      return quotes.map(([, cite = '', text = '']) => `- "${excerpt(text, 120)}" ${cite}`);
    });
}

/** Quotes in a tool's result, each between tags that its text cannot close. */
const QUOTES = /<(?:passage|page) cite="([^"]*)"[^>]*>\n([^]*?)\n<\/(?:passage|page)>/g;
const SHOWN_QUOTES = 3;
