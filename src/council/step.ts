/** Executes a node: asks its model and reads the answer. run/decide.ts decides what follows. */
import { ModelFailed } from '../errors.js';
import type { ModelAnswer, ModelRequest, ModelUsage } from '../models/port.js';
import type { CallAccounts } from './attempt-calls.js';
import { AttemptCalls } from './attempt-calls.js';
import type { ThoughtFilter } from '../models/thoughts.js';
import { thoughtFilter } from '../models/thoughts.js';
import type { Ask, Failed, StepFailure, StepInput, StepOutput } from './executors.js';
import { bounded, execute } from './executors.js';

export interface Step extends StepInput, CallAccounts {
  readonly ask: Ask;
  /** Called before a request of a call is repeated. Resolves if nothing has ended the attempt. */
  readonly mayAsk?: () => Promise<void>;
  /** As in System. */
  readonly monotonicMs: () => number;
  /** Returns the listener to a draft while the model writes it, or null; called before each call to the model. */
  readonly tokenSink?: () => TokenSink | null;
}

/** The cost of a successful outcome. */
interface StepCost {
  /** Sum over all calls of the step. */
  readonly usage: ModelUsage;
  /** How many calls it made, if several. */
  readonly calls?: number;
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
  const calls = new AttemptCalls(step);
  let dropped: readonly string[] = [];
  let finish: string | undefined;
  const listen = draftListener(step);
  const ask = async (request: ModelRequest): Promise<ModelAnswer> => {
    step.signal.throwIfAborted();
    await calls.begin(request);
    const listener = listen(request);
    const beforeRepeat = async (usage: ModelUsage | null): Promise<void> => {
      await countRepeat(request, calls, usage);
      await step.mayAsk?.();
    };
    let answer: ModelAnswer;
    try {
      answer = await step.ask({ beforeRepeat, ...request, ...listener?.hooks });
    } catch (error) {
      calls.fail(error);
      throw error;
    }
    step.signal.throwIfAborted();
    listener?.end();
    calls.end(answer.usage);
    if (answer.dropped !== undefined) dropped = [...new Set([...dropped, ...answer.dropped])];
    finish = answer.finish ?? finish;
    return { ...answer, text: answer.text.toWellFormed() };
  };
  try {
    const result = await execute(step, ask);
    if (result.kind === 'failed') return withUsage(result, calls);
    return {
      usage: calls.total,
      durationMs: Math.round(step.monotonicMs() - startedMs),
      ...(dropped.length > 0 && { dropped }),
      ...(finish !== undefined && { finish }),
      ...calls.several,
      ...result,
    };
  } catch (error) {
    return withUsage({ kind: 'failed', failure: failureOf(error, step) }, calls);
  }
}

/** Counts a request of a call that is made again by itself. */
async function countRepeat(request: ModelRequest, calls: AttemptCalls, usage: ModelUsage | null): Promise<void> {
  calls.end(usage);
  await calls.begin(request);
}

function withUsage({ failure }: Failed, { total, several }: AttemptCalls): Failed {
  const isUnknown = total.inputTokens === null && total.outputTokens === null && total.costUsd === undefined;
  return { kind: 'failed', failure: { ...failure, ...(isUnknown ? {} : { usage: total }), ...several } };
}

function failureOf(error: unknown, { node, signal }: StepInput): StepFailure {
  if (signal.aborted) return { kind: 'aborted', message: bounded(`Node "${node.id}" was aborted`), retryable: true };
  const message = bounded(error instanceof Error ? error.message || error.name : String(error));
  if (!(error instanceof ModelFailed)) return { kind: 'model_error', message, retryable: false };
  const { kind, retryable, retryAfterMs, outageMs } = error.data;
  return {
    kind,
    message,
    retryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(outageMs !== undefined && { outageMs }),
  };
}

// Drafts while the model writes them.

/** Receives pieces of a draft. `turn` counts from 1; when it increases, the text of earlier turns is not part of the draft. */
export type TokenSink = (text: string, turn: number) => void;

/** Passes prose on without thoughts; nothing of JSON answers or of an aborted attempt. */
function draftListener({
  tokenSink,
  signal,
}: Pick<Step, 'tokenSink' | 'signal'>): (request: ModelRequest) => DraftListener | null {
  let turn = 0;
  return ({ answer }) => {
    const sink = answer === 'draft' ? (tokenSink?.() ?? null) : null;
    if (sink === null) return null;
    const nextTurn = (): number => (turn += 1);
    const newFilter = (): ThoughtFilter => {
      // The text so far is not part of the draft: it came before tool calls, or in an answer that broke off.
      nextTurn();
      const emit = (text: string): void => {
        if (!signal.aborted) sink(text, turn);
      };
      return thoughtFilter({ emit, retract: nextTurn });
    };
    let filter = newFilter();
    let hasTokens = false;
    return {
      hooks: {
        onToken(text) {
          hasTokens = true;
          filter.push(text);
        },
        onStart() {
          if (hasTokens) filter = newFilter();
          hasTokens = false;
        },
      },
      end: () => filter.end(),
    };
  };
}

interface DraftListener {
  readonly hooks: Required<Pick<ModelRequest, 'onToken' | 'onStart'>>;
  /** Ends the answer. */
  readonly end: () => void;
}
