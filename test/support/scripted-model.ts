import type { LanguageModel, ModelAnswer, ModelRequest, ToolCall } from '../../src/models/port.js';

/** The reply to a call: a text with tool calls, an error to throw, or `'hold'`: no reply until the test settles the call. */
export type Reply =
  | { readonly text: string; readonly calls?: readonly ToolCall[] }
  | { readonly error: unknown }
  | 'hold';

/** Chooses the reply to a request; `index` counts all requests from 0. */
export type Script = (request: ModelRequest, index: number) => Reply;

/** A held call. It ignores its signal like a hanging adapter. */
export interface HeldCall {
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  release(text?: string): void;
  fail(error: unknown): void;
}

export interface ScriptedModel extends LanguageModel {
  /** Every request so far, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Held calls not yet settled, oldest first. */
  readonly held: readonly HeldCall[];
  /** Resolves once this many requests have come in total. */
  called(times: number): Promise<void>;
}

/** A language model that answers by a script: a function, or a list used up in order. */
export function scriptedModel(script: Script | readonly Reply[] = councilScript([8])): ScriptedModel {
  const choose = typeof script === 'function' ? script : fromList(script);
  const requests: ModelRequest[] = [];
  const held: HeldCall[] = [];
  const watchers = new Set<() => void>();

  return {
    provider: 'scripted',
    defaultModel: 'scripted-1',
    requests,
    held,
    async ask(request, { signal }) {
      requests.push(request);
      const reply = choose(request, requests.length - 1);
      const answer = reply === 'hold' ? hold(held, request, signal) : settled(reply);
      watchers.forEach((watch) => watch());
      return answer;
    },
    called: (times) =>
      new Promise((resolve) => {
        const watch = (): void => {
          if (requests.length < times) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
  };
}

/** Delegates each call to the current model, so that many tests with different scripts can share a service. */
export function currentModel(current: () => LanguageModel): LanguageModel {
  const { provider, defaultModel } = scriptedModel();
  return { provider, defaultModel, ask: (request, deps) => current().ask(request, deps) };
}

/** Critics give these scores in order and repeat the last one; agents answer `Draft 1`, `Draft 2` and so on. */
export function councilScript(scores: readonly number[]): Script {
  let scored = 0;
  let drafted = 0;
  return ({ answer, promptInput }) => {
    if (answer === 'draft') {
      drafted += 1;
      return { text: `Draft ${drafted} by ${promptInput.label}` };
    }
    const score = scores[Math.min(scored, scores.length - 1)];
    scored += 1;
    return { text: JSON.stringify({ score, feedback: `Feedback ${scored}` }) };
  };
}

/** A council whose first call is held. */
export function heldCouncil(): ScriptedModel {
  const council = councilScript([8]);
  return scriptedModel((request, index) => (index === 0 ? 'hold' : council(request, index)));
}

function fromList(replies: readonly Reply[]): Script {
  return (_request, index) =>
    replies[index] ?? { error: new Error(`The script has ${replies.length} replies, this is call ${index + 1}`) };
}

async function settled(reply: Exclude<Reply, 'hold'>): Promise<ModelAnswer> {
  if ('error' in reply) throw reply.error;
  return { ...answerOf(reply.text), ...(reply.calls !== undefined && { calls: reply.calls }) };
}

function hold(held: HeldCall[], request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      held.splice(held.indexOf(call), 1);
      act();
    };
    const call: HeldCall = {
      request,
      signal,
      release: (text = `Draft by ${request.promptInput.label}`) => settle(() => resolve(answerOf(text))),
      fail: (error) => settle(() => reject(error)),
    };
    held.push(call);
  });
}

function answerOf(text: string): ModelAnswer {
  return { text, usage: { inputTokens: 10, outputTokens: 5 } };
}

/** An answer that calls tools: each entry has a name and its arguments, as a value or as the text of the model. */
export function asks(...calls: readonly (readonly [name: string, given: unknown])[]): Reply {
  return {
    text: '',
    calls: calls.map(([name, given], index) => ({
      id: `call_${index}`,
      name,
      argumentsJson: typeof given === 'string' ? given : JSON.stringify(given),
    })),
  };
}
