/** Executes a node: asks its model and reads the answer. run/decide.ts decides what follows. */
import { cutAtSentence } from './cut.js';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { GraphNode } from '../generated/schemas.js';
import type { PromptInput, ModelAnswer, ModelRequest, ModelUsage } from '../models/port.js';
import { callsInText } from '../models/calls-in-text.js';
import type { Reserve } from './attempt-calls.js';
import { AttemptCalls } from './attempt-calls.js';
import type { RenderedPrompt } from './prompt.js';
import { ROLES } from './roles.js';
import type { Conversation } from './conversation.js';
import { converse, withResults } from './conversation.js';
import { readCritique } from './critic-answer.js';
import type { ThoughtFilter } from '../models/thoughts.js';
import { thoughtFilter, withoutThoughts } from '../models/thoughts.js';
import { isLonger, jsonBytes, MAX_DRAFT_BYTES, MAX_FEEDBACK_CHARS } from '../graph/limits.js';
import type { ToolKit } from './tools/call.js';

/** A call to a model; the caller has bound run, deadline and signal. */
export type Ask = (request: ModelRequest) => Promise<ModelAnswer>;

export interface Step {
  readonly node: GraphNode;
  /** The model that it asks. Default: the node's. */
  readonly model?: string;
  /** The output limit that it sends, in tokens. Default: the node's. */
  readonly maxOutputTokens?: number;
  readonly promptInput: PromptInput;
  /** The texts sent to the model, rendered from `promptInput`. */
  readonly rendered: RenderedPrompt;
  readonly ask: Ask;
  /** Ends the step and its calls. */
  readonly signal: AbortSignal;
  /** As in System. */
  readonly monotonicMs: () => number;
  /** Called before each call after the first. Absent: the run has no budget. */
  readonly reserve?: Reserve;
  /** The tools in the prompt; absent if there are none. */
  readonly kit?: ToolKit;
  /** Returns the listener to a draft while the model writes it, or null; called before each call to the model. */
  readonly tokenSink?: () => TokenSink | null;
}

/** Receives pieces of a draft. `turn` counts from 1; when it increases, the text of earlier turns is not part of the draft. */
export type TokenSink = (text: string, turn: number) => void;

/**
 * Why an attempt failed: a failure of the model, or an answer that the step cannot use. `model_error` is any other
 * exception.
 */
export type AttemptFailureKind =
  | ModelFailureKind
  | (
      | 'thoughts_only'
      | 'unusable_critique'
      | 'draft_too_large'
      | 'feedback_too_large'
      | 'budget_exceeded'
      | 'model_error'
    );

export interface StepFailure {
  readonly kind: AttemptFailureKind;
  /** Well-formed, at most 2000 UTF-16 units. */
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  /** As in ModelFault. */
  readonly outageMs?: number;
  /** The usage of the failed step; absent if unknown. */
  readonly usage?: ModelUsage;
  /** As in StepCost. */
  readonly lastCall?: ModelUsage;
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

/** The outcome of a step. A role with a new kind of answer adds its own. */
export type StepOutcome =
  | ({ readonly kind: 'drafted'; readonly draft: string } & StepCost)
  | ({ readonly kind: 'scored'; readonly score: number; readonly feedback: string } & StepCost)
  | { readonly kind: 'failed'; readonly failure: StepFailure };

/**
 * Executes an attempt of a node. An agent's answer without its thoughts becomes the draft. If a critic's answer is unusable,
 * it asks once more, without tools. Never rejects: an error becomes a failure, and an abort takes precedence.
 */
export async function executeStep(step: Step): Promise<StepOutcome> {
  const startedMs = step.monotonicMs();
  const calls = new AttemptCalls(step.reserve);
  const dropped = new Set<string>();
  let finish: string | undefined;
  const listen = draftListener(step);
  const ask = async (request: ModelRequest): Promise<ModelAnswer> => {
    step.signal.throwIfAborted();
    await calls.begin(request);
    const listener = listen(request);
    const answer = await step
      .ask({ beforeRepeat: (usage) => countRepeat(request, calls, usage), ...request, ...listener?.hooks })
      .catch((error: unknown) => {
        calls.fail(error);
        throw error;
      });
    step.signal.throwIfAborted();
    listener?.end();
    calls.end(answer.usage);
    answer.dropped?.forEach((each) => dropped.add(each));
    finish = answer.finish ?? finish;
    return { ...answer, text: answer.text.toWellFormed() };
  };
  try {
    const result = await STEPS[ROLES[step.promptInput.role].answer](step, ask);
    if (result.kind === 'failed') return withUsage(result, calls);
    const notes = { ...(dropped.size > 0 && { dropped: [...dropped] }), ...(finish !== undefined && { finish }) };
    const durationMs = Math.round(step.monotonicMs() - startedMs);
    return { usage: calls.total, durationMs, ...notes, ...calls.lastCall, ...result };
  } catch (error) {
    return withUsage({ kind: 'failed', failure: failureOf(error, step) }, calls);
  }
}

/** Counts a request of a call that is made again by itself. */
async function countRepeat(request: ModelRequest, calls: AttemptCalls, usage: ModelUsage | null): Promise<void> {
  if (usage !== null) calls.end(usage);
  await calls.begin(request);
}

type StepResult = { kind: 'drafted'; draft: string } | { kind: 'scored'; score: number; feedback: string } | Failed;
type Failed = Extract<StepOutcome, { kind: 'failed' }>;

/** Passes a draft on while the model writes it, without thoughts; nothing of a critic or of an aborted attempt. */
function draftListener({ tokenSink, signal }: Step): (request: ModelRequest) => DraftListener | null {
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

function withUsage({ failure }: Failed, { total, lastCall }: AttemptCalls): Failed {
  const isUnknown = total.inputTokens === null && total.outputTokens === null && total.costUsd === undefined;
  return { kind: 'failed', failure: { ...failure, ...(isUnknown ? {} : { usage: total }), ...lastCall } };
}

/** The executor of each kind of answer. */
const STEPS: Readonly<Record<ModelRequest['answer'], (step: Step, ask: Ask) => Promise<StepResult>>> = {
  draft,
  critique: score,
};

async function draft(step: Step, ask: Ask): Promise<StepResult> {
  const { node, kit } = step;
  const answer = await converseWith(requestOf(step), step, ask);
  const { text, endsInThought } = withoutThoughts(answer.text);
  const unusable = (kind: AttemptFailureKind, why: string): Failed =>
    failed(kind, `Cannot use the draft of node "${node.id}": ${why}`, true);
  if (endsInThought) return unusable('thoughts_only', 'its answer ends within its thoughts: <think> is never closed');
  if (text.trim() === '') {
    if (answer.text.trim() === '') return unusable('empty_answer', 'it is empty');
    return unusable('thoughts_only', 'its answer holds thoughts and no text');
  }
  // A model may write calls after it has no more.
  if (kit !== undefined && callsInText(text, new Set(kit.tools.map(({ name }) => name))).length > 0) {
    return unusable('malformed_function_call', 'it is a tool call after the last one allowed');
  }
  if (isLonger(text, MAX_DRAFT_BYTES)) return tooLarge(node, text);
  return { kind: 'drafted', draft: text };
}

async function score(step: Step, ask: Ask): Promise<StepResult> {
  const { node } = step;
  const request = requestOf(step);
  const first = await converseWith(request, step, ask).catch(emptyInsteadOfFailure);
  let answer = first.text;
  let critique = readCritique(answer);
  if (critique === null) {
    const hint = `Your last answer could not be used: ${unusableAnswer(answer)} Score the draft again.`;
    answer = (await ask(withResults(request, first.rounds, hint)).catch(emptyInsteadOfFailure)).text;
    critique = readCritique(answer);
  }
  if (critique === null) {
    return failed('unusable_critique', `Cannot use the critique of node "${node.id}": ${unusableAnswer(answer)}`, true);
  }
  return { kind: 'scored', score: critique.score, feedback: cutAtSentence(critique.feedback, MAX_FEEDBACK_CHARS) };
}

async function converseWith(request: ModelRequest, { node, kit, signal }: Step, ask: Ask): Promise<Conversation> {
  if (kit === undefined || kit.tools.length === 0) return { text: (await ask(request)).text, rounds: [] };
  return await converse(request, ask, { kit, timeoutMs: node.timeoutMs, signal });
}

/** For `catch`: an empty answer of a critic counts as unusable, so that the step asks once more. */
function emptyInsteadOfFailure(error: unknown): Conversation {
  if (error instanceof ModelFailed && (error.data.kind === 'empty_answer' || error.data.kind === 'no_text')) {
    return { text: '', rounds: [] };
  }
  throw error;
}

function requestOf(step: Step): ModelRequest {
  const { node, promptInput, rendered } = step;
  const { model = node.model, maxOutputTokens = node.maxOutputTokens } = step;
  return {
    promptInput,
    answer: ROLES[promptInput.role].answer,
    ...rendered,
    ...(model === undefined ? {} : { model }),
    ...(node.temperature === undefined ? {} : { temperature: node.temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
}

/** The unusable answer and what is wanted, for the critic and the log. The answer is quoted as JSON, as data. */
function unusableAnswer(given: string): string {
  const { text: answer } = withoutThoughts(given);
  const thoughts = answer.trim() === '' && given.trim() !== '' ? ' after its thoughts' : '';
  const quoted = JSON.stringify(answer.slice(0, QUOTED_CHARS).toWellFormed());
  const rest = answer.length > QUOTED_CHARS ? ' and more' : '';
  return `the answer was ${quoted}${rest}${thoughts}; wanted is one JSON object with a number "score" from 0 to 10 and a string "feedback".`;
}

function tooLarge(node: GraphNode, draft: string): Failed {
  const sizes = `${jsonBytes(draft)} bytes as JSON, at most ${MAX_DRAFT_BYTES} allowed`;
  return failed('draft_too_large', `Cannot take the draft of node "${node.id}": ${sizes}`, false);
}

function failed(kind: AttemptFailureKind, message: string, retryable: boolean): Failed {
  return { kind: 'failed', failure: { kind, message: bounded(message), retryable } };
}

function failureOf(error: unknown, { node, signal }: Step): StepFailure {
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

function bounded(message: string): string {
  return message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
}

/** Length of a quoted unusable answer, in UTF-16 units. */
const QUOTED_CHARS = 200;

/** Longest message of a failure, in UTF-16 units: events are bounded, exceptions are not. */
const MAX_MESSAGE_CHARS = 2000;
