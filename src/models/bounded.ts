/** Bounds a language model: a limit on concurrent calls, a deadline on each, and waiting through outages. */
import type { System } from '../system/system.js';
import { ModelFailed } from '../errors.js';
import type { CancelSignal } from '../system/async/deadline.js';
import { inTime } from '../system/async/deadline.js';
import { callAborted } from './port.js';
import type { CallOutcome, Outage } from './circuit.js';
import { outageWait } from './circuit.js';
import type { Pass } from './circuit-breaker.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { settleRequest } from './billing.js';
import { isAnswer, isOutage, modelFailed } from './failed-exchange.js';
import type { LanguageModel, ModelAnswer, ModelCall, ModelRequest } from './port.js';
import type { ModelUse } from './fair-semaphore.js';
import type { ProviderState } from './provider-states.js';
import { ProviderStates } from './provider-states.js';
import { FairSemaphore } from './fair-semaphore.js';

export interface BoundedModelOptions {
  /** Concurrent calls, at least 1; more wait, fairly between runs. */
  readonly maxCalls: number;
  /** How long an outage of a model's server is waited for, in milliseconds; 0: it is a failure like any other. */
  readonly outageMs: number;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'now' | 'random'>;
  /** Called with the failure when a model's server goes out, and with null when it answers again. */
  readonly onOutage?: (model: string, failure: ModelFailed | null) => void;
  /** Called when a call has ended. */
  readonly onCallEnded?: (call: EndedCall) => void;
}

/** A call that a model has answered or that has failed. */
export interface EndedCall {
  /** Full name. */
  readonly model: string;
  /** Kind of the failure, or null if the model has answered. */
  readonly failure: string | null;
  /** Without the wait for a slot. */
  readonly durationMs: number;
}

/** On whose behalf a call is made and how long it may take. */
export interface CallOptions {
  readonly runId: string;
  /** From the moment the call has its slot, in milliseconds. */
  readonly timeoutMs: number;
  /** The outage that the caller is already waiting out; null: none. */
  readonly outage: Outage | null;
  /** Cancels the call, waiting or in flight. */
  readonly signal: CancelSignal;
  /** Called when the call has its slot. When this resolves, the call begins, unless it is cancelled. Default: it begins at once. */
  readonly mayAsk?: () => Promise<void>;
}

export interface BoundedModel {
  readonly defaultModel: string;
  /** The full name of the model that a node of a blueprint names; absent means the default model. */
  readonly fullName: (model: string | undefined) => string;
  /**
   * Calls the model once a slot is free. Settles by the deadline even if the adapter never does; a later answer is
   * dropped. In an outage that the caller waits out the call is repeated, in turn with all others waiting for the same
   * model, until there is an answer or the outage's budget is spent.
   *
   * @throws {ModelFailed} `timeout` (retryable) at the deadline, `aborted` by the signal, else what the adapter throws;
   * with `outageMs` when an outage begins for the caller, not retryable when an outage has outlasted its budget
   */
  ask(request: ModelRequest, options: CallOptions): Promise<ModelAnswer>;
  /** Models whose servers are out. */
  unreachable(): readonly string[];
  /** The models that are being called, or waited for. */
  uses(): readonly ModelUse[];
  /** The providers, the default first. */
  providers(): readonly ProviderState[];
}

/** Puts the bounds around a model. */
export function boundedModel(
  model: LanguageModel,
  { maxCalls, outageMs, system, onOutage = () => undefined, onCallEnded = () => undefined }: BoundedModelOptions,
): BoundedModel {
  const semaphore = new FairSemaphore(maxCalls, model.maxCalls);
  const states = new ProviderStates(model);
  const breaker = new CircuitBreaker({ outageMs, system, onOutage });
  const fullName = (name: string | undefined): string => model.fullName?.(name) ?? name ?? model.defaultModel;
  const bounds = { model, system, semaphore, states, breaker, onCallEnded };
  return {
    defaultModel: model.defaultModel,
    fullName,
    ask: (request, options) => askThroughOutages(bounds, request, options),
    unreachable: () => breaker.unreachable(),
    uses: () => semaphore.uses(),
    providers: () => states.list(semaphore.uses()),
  };
}

interface Bounds {
  readonly model: LanguageModel;
  readonly system: BoundedModelOptions['system'];
  readonly semaphore: FairSemaphore;
  readonly states: ProviderStates;
  readonly breaker: CircuitBreaker;
  readonly onCallEnded: (call: EndedCall) => void;
}

async function askThroughOutages(bounds: Bounds, request: ModelRequest, options: CallOptions): Promise<ModelAnswer> {
  const { model, system, breaker } = bounds;
  const { signal } = options;
  const name = request.model ?? model.defaultModel;
  const askedMs = system.monotonicMs();
  const outage = options.outage === null ? null : outageWait(options.outage, system);
  for (;;) {
    const pass = await breaker.enter(name, { outage, signal });
    try {
      const answered = await askInTurn(bounds, request, { options, pass });
      if (answered !== null) return { waitedMs: answered.startedMs - askedMs, ...answered.answer };
    } catch (error) {
      if (!(error instanceof ModelFailed)) throw error;
      const failure = breaker.failureAfter(name, error, outage);
      if (failure !== null) throw failure;
      await settleRequest(request, error, signal);
    }
  }
}

/**
 * One call, once there is a slot; its result is reported to the circuit breaker before the slot goes to the next.
 * Null: the server went out while the call waited.
 */
async function askInTurn(
  bounds: Bounds,
  request: ModelRequest,
  { options, pass }: { readonly options: CallOptions; readonly pass: Pass },
): Promise<Answered | null> {
  const { model, system, semaphore } = bounds;
  const name = request.model ?? model.defaultModel;
  const { signal } = options;
  try {
    await semaphore.enter({ runId: options.runId, model: name }, signal);
  } catch (error) {
    pass.report('unknown');
    throw error;
  }
  let startedMs: number | null = null;
  try {
    if (pass.isRevoked()) return null;
    await options.mayAsk?.();
    if (signal.aborted) throw callAborted(signal);
    startedMs = system.monotonicMs();
    const late = (): ModelFailed => timedOut(name, options.timeoutMs);
    request.onStart?.();
    const ask = (call: ModelCall): Promise<ModelAnswer> => model.ask(request, call);
    const answer = await inTime(ask, { system, maxMs: options.timeoutMs, late, signal, aborted: callAborted });
    pass.report('answered');
    reportEnd(bounds, name, { error: null, startedMs });
    return { answer, startedMs };
  } catch (error) {
    pass.report(outcomeOf(error, signal));
    if (startedMs !== null) reportEnd(bounds, name, { error, startedMs });
    throw error;
  } finally {
    semaphore.leave(name);
  }
}

interface Answered {
  readonly answer: ModelAnswer;
  /** When the call began, on the monotonic clock. */
  readonly startedMs: number;
}

interface CallEnd {
  /** What the call threw, or null if it was answered. */
  readonly error: unknown;
  readonly startedMs: number;
}

function reportEnd({ states, system, onCallEnded }: Bounds, name: string, { error, startedMs }: CallEnd): void {
  states.onCallEnded(name, error);
  const kind = error instanceof ModelFailed ? error.data.kind : 'fault';
  const durationMs = system.monotonicMs() - startedMs;
  onCallEnded({ model: name, failure: error === null ? null : kind, durationMs });
}

/** How a call ended that has thrown. */
function outcomeOf(error: unknown, signal: CancelSignal): CallOutcome {
  if (!(error instanceof ModelFailed)) return 'unknown';
  if (isOutage(error.data.kind)) return error;
  if (signal.aborted) return 'unknown';
  return isAnswer(error.data.kind) ? 'answered' : error;
}

function timedOut(name: string, timeoutMs: number): ModelFailed {
  return modelFailed(`Cannot get an answer from model "${name}": none came within ${timeoutMs} ms`, 'timeout');
}
