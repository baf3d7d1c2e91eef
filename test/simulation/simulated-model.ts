/** A model that answers in virtual time, and is unavailable, hangs or returns nonsense during a fault. */
import { ModelFailed } from '../../src/errors.js';
import type { LanguageModel, ModelAnswer, ModelRequest, ModelUsage, ToolCall } from '../../src/models/port.js';
import { mayBeBilled, settleRequest } from '../../src/models/billing.js';
import { callAborted } from '../../src/models/port.js';
import type { FaultKind } from './faults.js';
import type { Draws, Process } from './scheduler.js';

export interface SimulatedModelDeps {
  readonly process: Process;
  /** Longest duration of an answer in milliseconds, unless it hangs. */
  readonly longestMs: number;
  /** The current fault, or null if there is none. */
  readonly fault: () => FaultKind | null;
  /** Called at each request of a call. */
  readonly onCall: (request: ModelRequest) => CallUnderWay;
  /** Returns a new text for each call. */
  readonly nextDraft: () => string;
}

export interface CallUnderWay {
  /** Tool calls that the model returns instead of an answer. */
  readonly toolCalls: (draws: Draws) => readonly ToolCall[];
  /** Called at the end with the text of the answer, or null if there is none. */
  readonly ended: (given: string | null) => void;
  /** Called before the end if the request is not billed. */
  readonly isFree: () => void;
}

type Reply = Pick<ModelAnswer, 'text' | 'calls'> | { readonly error: ModelFailed };

export function simulatedModel({ process, longestMs, fault, onCall, nextDraft }: SimulatedModelDeps): LanguageModel {
  const { draws } = process;

  function replyTo(request: ModelRequest, { toolCalls }: CallUnderWay): Reply {
    switch (fault()) {
      case 'model-unavailable': {
        const wait = draws.chance(0.2) && { retryAfterMs: draws.whole(100, 3_000) };
        return { error: new ModelFailed('It is out', { kind: 'unavailable', retryable: true, ...wait }) };
      }
      case 'connection-lost':
        return { error: new ModelFailed('It broke', { kind: 'connection_lost', retryable: true }) };
      case 'model-refuses':
        return { error: new ModelFailed('Not this', { kind: 'bad_request', retryable: draws.chance(0.5) }) };
      case 'model-nonsense':
        return { text: request.answer === 'critique' ? 'Hm.' : '' };
      default: {
        const calls = toolCalls(draws);
        if (calls.length > 0) return { text: 'Let me see.', calls };
        return { text: request.answer === 'critique' ? critique(draws.pick([3, 5, 8, 9])) : nextDraft() };
      }
    }
  }

  /** Makes one request. */
  function send(request: ModelRequest, signal: AbortSignal, isBroken: boolean): Promise<ModelAnswer> {
    return new Promise<ModelAnswer>((resolve, reject) => {
      const call = onCall(request);
      const delayMs = fault() === 'model-hangs' ? 4_000 : draws.random() * (draws.chance(0.6) ? 50 : longestMs);
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
        call.ended('text' in reply && reply.calls === undefined ? reply.text : null);
        if ('error' in reply) reject(reply.error);
        else resolve({ ...reply, usage: usageUnder(fault()) });
      });
      signal.addEventListener('abort', stop, { once: true });
    });
  }

  return {
    provider: 'simulated',
    defaultModel: 'simulated-1',
    async ask(request, { signal }) {
      if (fault() !== 'stream-broken') return await send(request, signal, false);
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

function critique(score: number): string {
  return JSON.stringify({ score, feedback: `Worth ${score}` });
}
