/** A model that answers in virtual time, and is unavailable, hangs or returns nonsense during a fault. */
import { ModelFailed } from '../../src/errors.js';
import type { LanguageModel, ModelAnswer, ModelRequest, ModelUsage, ToolCall } from '../../src/models/port.js';
import { mayBeBilled, settleRequest } from '../../src/models/billing.js';
import { callAborted } from '../../src/models/port.js';
import type { FaultKind } from './faults.js';
import { DEFAULT_MODEL, LISTING } from './graphs.js';
import type { Draws, Process } from './scheduler.js';

export interface SimulatedModelDeps {
  readonly process: Process;
  /** Longest duration of an answer in milliseconds, unless it hangs. */
  readonly longestMs: number;
  /** The current fault of a model, or null if there is none. */
  readonly fault: (model: string) => FaultKind | null;
  /** Called at each request of a call. */
  readonly onCall: (request: ModelRequest) => CallUnderWay;
  /** Returns a new text for each call. */
  readonly nextDraft: () => string;
}

export interface CallUnderWay {
  /** Tool calls that the model returns instead of an answer. */
  readonly toolCalls: (draws: Draws) => readonly ToolCall[];
  /** Called at the end with the text that marks the answer, or null if there is none. */
  readonly ended: (mark: string | null) => void;
  /** Called before the end if the request is not billed. */
  readonly isFree: () => void;
}

/** An answer; one that a run can record has a mark of its own. */
type Reply = (Pick<ModelAnswer, 'text' | 'calls'> & { readonly mark?: string }) | { readonly error: ModelFailed };

export function simulatedModel({ process, longestMs, fault, onCall, nextDraft }: SimulatedModelDeps): LanguageModel {
  const { draws } = process;

  function replyTo(request: ModelRequest, { toolCalls }: CallUnderWay): Reply {
    switch (fault(modelOf(request))) {
      case 'model-unavailable': {
        const wait = draws.chance(0.2) && { retryAfterMs: draws.whole(100, 3_000) };
        return { error: new ModelFailed('It is out', { kind: 'unavailable', retryable: true, ...wait }) };
      }
      case 'connection-lost':
        return { error: new ModelFailed('It broke', { kind: 'connection_lost', retryable: true }) };
      case 'model-refuses':
        return { error: refusal(draws) };
      case 'model-nonsense':
        return { text: request.answer === 'draft' ? '' : nonsense(request, draws) };
      default: {
        const calls = toolCalls(draws);
        if (calls.length > 0) return { text: 'Let me see.', calls };
        return answerTo(request, nextDraft(), draws);
      }
    }
  }

  /** Makes one request. */
  function send(request: ModelRequest, signal: AbortSignal, isBroken: boolean): Promise<ModelAnswer> {
    return new Promise<ModelAnswer>((resolve, reject) => {
      // A process that has died within this turn asks nothing more.
      if (process.isDead) return;
      const call = onCall(request);
      const delayMs =
        fault(modelOf(request)) === 'model-hangs' ? 4_000 : draws.random() * (draws.chance(0.6) ? 50 : longestMs);
      // Some adapters answer after an abort.
      const isDeaf = draws.chance(0.2);
      const stop = (): void => {
        call.ended(null);
        if (isDeaf) return;
        cancel();
        reject(callAborted(signal));
      };
      const cancel = process.after(delayMs, () => {
        signal.removeEventListener('abort', stop);
        const reply = isBroken ? brokenOff(draws) : replyTo(request, call);
        if ('error' in reply && !mayBeBilled(reply.error.data)) call.isFree();
        call.ended('mark' in reply ? (reply.mark ?? null) : null);
        if ('error' in reply) return reject(reply.error);
        const { text, calls } = reply;
        resolve({ text, ...(calls !== undefined && { calls }), usage: usageUnder(fault(modelOf(request))) });
      });
      signal.addEventListener('abort', stop, { once: true });
    });
  }

  return {
    provider: 'simulated',
    defaultModel: DEFAULT_MODEL,
    async ask(request, { signal }) {
      if (fault(modelOf(request)) !== 'stream-broken') return await send(request, signal, false);
      try {
        return await send(request, signal, true);
      } catch (error) {
        if (signal.aborted) throw error;
        await settleRequest(request, error, signal);
        return await send(request, signal, false);
      }
    },
  };
}

/** A refusal of a request, or of the model or the key, after which another model is asked if there is one. */
function refusal(draws: Draws): ModelFailed {
  if (draws.chance(0.5)) return new ModelFailed('Not this', { kind: 'bad_request', retryable: draws.chance(0.5) });
  return new ModelFailed('Not here', { kind: draws.pick(['model_unknown', 'quota_used_up']), retryable: false });
}

/** The end of a stream that breaks off, with or without its usage. */
function brokenOff(draws: Draws): { readonly error: ModelFailed } {
  const usage = draws.chance(0.5) && { usage: usageUnder(null) };
  return { error: new ModelFailed('It broke off', { kind: 'unreadable_answer', retryable: true, ...usage }) };
}

/** More tokens than any call of a simulated run reserves. */
const ABOVE_RESERVATION = 20_000;

function usageUnder(fault: FaultKind | null): ModelUsage {
  if (fault === 'usage-unknown') return { inputTokens: null, outputTokens: null };
  return { inputTokens: fault === 'usage-above' ? ABOVE_RESERVATION : 10, outputTokens: 5 };
}

function modelOf({ model = DEFAULT_MODEL }: ModelRequest): string {
  return model;
}

/** A usable answer that holds a mark. A member's answer of a panel names its model. */
function answerTo(request: ModelRequest, mark: string, draws: Draws): Reply {
  switch (request.answer) {
    case 'critique':
      return { mark, text: JSON.stringify({ score: draws.pick([3, 5, 8, 9]), feedback: mark }) };
    case 'ranking':
      return { mark, text: JSON.stringify({ ranking: shuffled(lettersOf(request), draws), comment: mark }) };
    case 'analysis':
      return { mark, text: JSON.stringify({ ...NO_ANALYSIS, consensus: [mark] }) };
    case 'output':
      return { mark, text: JSON.stringify({ mark }) };
    case 'draft': {
      const isList = request.promptInput.label === LISTING;
      const plain = isList ? `${mark}\n${mark} again` : mark;
      const text = request.promptInput.role === 'panel' ? `I am ${modelOf(request)}.\n${mark}` : plain;
      return { mark: text, text };
    }
  }
}

const NO_ANALYSIS = { contradictions: [], partial_coverage: [], unique_insights: [], blind_spots: [] };

function lettersOf({ promptInput: { answers = [] } }: ModelRequest): readonly string[] {
  return answers.map(({ letter }) => letter);
}

function shuffled(letters: readonly string[], draws: Draws): readonly string[] {
  const keyed = letters.map((letter) => ({ letter, key: draws.random() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ letter }) => letter);
}

/** An unusable answer in JSON: prose, or a ranking that names a letter twice or leaves one out. */
function nonsense(request: ModelRequest, draws: Draws): string {
  const letters = lettersOf(request);
  if (request.answer !== 'ranking' || draws.chance(0.3)) return 'Hm.';
  const wrong = draws.chance(0.5) ? [...letters, ...letters.slice(0, 1)] : letters.slice(1);
  return JSON.stringify({ ranking: wrong, comment: 'Hm.' });
}
