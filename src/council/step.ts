/** Executes a node: asks its model and reads the answer. run/decide.ts decides what follows. */
import { ModelFailed } from '../errors.js';
import type { ModelAnswer, ModelRequest, ModelUsage } from '../models/port.js';
import { totalUsage } from '../models/usage.js';
import type { TokenSink } from './draft-listener.js';
import { draftListener } from './draft-listener.js';
import type { Ask, Failed, StepFailure, StepInput, StepOutput } from './executors.js';
import { bounded, execute } from './executors.js';

export interface Step extends StepInput {
  readonly ask: Ask;
  /** As in System. */
  readonly monotonicMs: () => number;
  /**
   * Called before each call after the first; resolves when the call may be made, and rejects when the attempt no longer
   * counts. Absent: the run has no budget.
   */
  readonly reserve?: (next: FurtherCall) => Promise<void>;
  /** Returns the listener to a draft while the model writes it, or null; called before each call to the model. */
  readonly tokenSink?: () => TokenSink | null;
}

/** A call that an attempt wants to make after others. */
export interface FurtherCall {
  readonly request: ModelRequest;
  /** Usage of the call before, and of all calls before. */
  readonly last: ModelUsage;
  readonly total: ModelUsage;
}

/** The cost of a successful outcome. */
interface StepCost {
  /** Sum over all calls of the step. */
  readonly usage: ModelUsage;
  /** The usage of the last call, if `reserve` was called before it. */
  readonly lastCall?: ModelUsage;
  /** Whole milliseconds from start to outcome, including waits for a slot or a server. */
  readonly durationMs: number;
  /** As in ModelAnswer, over all calls of the step. */
  readonly dropped?: readonly string[];
  readonly finish?: string;
}

/** The outcome of a step. */
export type StepOutcome = (StepOutput & StepCost) | Failed;

/**
 * Executes an attempt of a node (`execute`). Never rejects: an error becomes a failure, and an abort takes precedence.
 */
export async function executeStep(step: Step): Promise<StepOutcome> {
  const startedMs = step.monotonicMs();
  const spent: ModelUsage[] = [];
  const dropped = new Set<string>();
  let finish: string | undefined;
  const listen = draftListener(step);
  let last: ModelUsage | null = null;
  let reserved = false;
  const lastCall = (): { lastCall?: ModelUsage } => (reserved && last !== null ? { lastCall: last } : {});
  const used = (usage: ModelUsage): void => {
    last = usage;
    spent.push(usage);
  };
  const ask = async (request: ModelRequest): Promise<ModelAnswer> => {
    step.signal.throwIfAborted();
    if (last !== null && step.reserve !== undefined) {
      await step.reserve({ request, last, total: totalUsage(spent) });
      reserved = true;
    }
    const listener = listen(request);
    last = UNKNOWN_USAGE;
    const answer = await step.ask({ ...request, ...listener?.hooks }).catch((error: unknown) => {
      if (error instanceof ModelFailed && error.data.usage !== undefined) used(error.data.usage);
      throw error;
    });
    step.signal.throwIfAborted();
    listener?.end();
    used(answer.usage);
    answer.dropped?.forEach((each) => dropped.add(each));
    finish = answer.finish ?? finish;
    return { ...answer, text: answer.text.toWellFormed() };
  };
  try {
    const result = await execute(step, ask);
    if (result.kind === 'failed') return withUsage(result, spent, lastCall());
    const notes = { ...(dropped.size > 0 && { dropped: [...dropped] }), ...(finish !== undefined && { finish }) };
    return {
      ...notes,
      ...lastCall(),
      usage: totalUsage(spent),
      durationMs: Math.round(step.monotonicMs() - startedMs),
      ...result,
    };
  } catch (error) {
    return withUsage({ kind: 'failed', failure: failureOf(error, step) }, spent, lastCall());
  }
}

/** The usage of a call before its answer, or if the provider reports none. */
const UNKNOWN_USAGE: ModelUsage = { inputTokens: null, outputTokens: null };

function withUsage({ failure }: Failed, spent: readonly ModelUsage[], lastCall: Pick<StepFailure, 'lastCall'>): Failed {
  const usage = totalUsage(spent);
  const isUnknown = usage.inputTokens === null && usage.outputTokens === null && usage.costUsd === undefined;
  return { kind: 'failed', failure: { ...failure, ...(isUnknown ? {} : { usage }), ...lastCall } };
}

function failureOf(error: unknown, { node, signal }: StepInput): StepFailure {
  if (signal.aborted) return { kind: 'aborted', message: bounded(`Node "${node.id}" was aborted`), retryable: true };
  const message = bounded(error instanceof Error ? error.message || error.name : String(error));
  if (!(error instanceof ModelFailed)) return { kind: 'model_error', message, retryable: false };
  const { kind, retryable, retryAfterMs, outageMs } = error.data;
  return {
    ...{ kind, message, retryable },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(outageMs !== undefined && { outageMs }),
  };
}
