/** A language model with a bound on the calls at once and a deadline on each. */
import type { Ambient } from '../ambient.js';
import { ModelFailed } from '../errors.js';
import { callAborted } from './call-aborted.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from './port.js';
import { turnstile } from './turnstile.js';

export interface BoundedModelOptions {
  /** Calls at once, from 1; more wait, fairly by run. */
  readonly maxCalls: number;
  readonly ambient: Pick<Ambient, 'after'>;
}

/** On whose behalf a call is made and how long it may take. */
export interface CallTerms {
  readonly runId: string;
  /** From the moment the call has its slot, in milliseconds. */
  readonly timeoutMs: number;
  /** Withdraws the call, waiting or under way. */
  readonly signal: AbortSignal;
}

export interface BoundedModel {
  readonly defaultModel: string;
  /**
   * Asks the model once a slot is free. Settles by the deadline even if the adapter never does; what the adapter
   * answers after that is dropped.
   *
   * @throws {ModelFailed} `timeout` (retryable) at the deadline, `aborted` by the signal, else what the adapter throws
   */
  ask(request: ModelRequest, terms: CallTerms): Promise<ModelAnswer>;
  /** How many calls wait for a slot. */
  waiting(): number;
}

/** Puts the bounds around a model. */
export function boundedModel(model: LanguageModel, { maxCalls, ambient }: BoundedModelOptions): BoundedModel {
  const gate = turnstile(maxCalls);
  return {
    defaultModel: model.defaultModel,
    async ask(request, terms) {
      const name = request.model ?? model.defaultModel;
      await gate.enter({ runId: terms.runId, model: name }, terms.signal);
      try {
        return await askInTime(model, request, terms, ambient);
      } finally {
        gate.leave(name);
      }
    },
    waiting: () => gate.waiting(),
  };
}

function askInTime(
  model: LanguageModel,
  request: ModelRequest,
  { timeoutMs, signal }: CallTerms,
  ambient: Pick<Ambient, 'after'>,
): Promise<ModelAnswer> {
  if (signal.aborted) return Promise.reject(callAborted(signal));
  const call = new AbortController();
  return new Promise<ModelAnswer>((resolve, reject) => {
    // Rejects before it aborts: the adapter's own words about the abort come second and are dropped.
    const giveUp = (failure: ModelFailed): void => {
      end();
      reject(failure);
      call.abort(failure);
    };
    const withdraw = (): void => giveUp(callAborted(signal));
    const cancel = ambient.after(timeoutMs, () => giveUp(timedOut(request.model ?? model.defaultModel, timeoutMs)));
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', withdraw);
    };
    signal.addEventListener('abort', withdraw);
    // The controller itself, not its signal: Node makes that when it is first read, and not every model reads it.
    model.ask(request, call).then(
      (answer) => {
        end();
        resolve(answer);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}

function timedOut(name: string, timeoutMs: number): ModelFailed {
  return new ModelFailed(`Cannot get an answer from model "${name}": none came within ${timeoutMs} ms`, {
    kind: 'timeout',
    retryable: true,
  });
}
