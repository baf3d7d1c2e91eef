/** What a step asks its model for, and how it reads the answer: an executor for each kind of answer. */
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { Analysis, GraphNode } from '../generated/schemas.js';
import { isLonger, jsonBytes, MAX_DRAFT_BYTES, MAX_FEEDBACK_CHARS } from '../graph/limits.js';
import { callsInText } from '../models/calls-in-text.js';
import type { ModelAnswer, ModelRequest, ModelUsage, PromptInput } from '../models/port.js';
import { withoutThoughts } from '../models/thoughts.js';
import type { CancelSignal } from '../system/async/deadline.js';
import type { Conversation } from './conversation.js';
import { converse, withResults } from './conversation.js';
import { cutAtSentence } from './cut.js';
import { readAnalysis } from './deliberation/analysis-answer.js';
import { enumerated } from './deliberation/anonymity.js';
import { readRanking } from './deliberation/ranking-answer.js';
import type { RenderedPrompt } from './prompt.js';
import { ROLES } from './roles.js';
import type { ToolKit } from './tools/call.js';
import { answerWith, fieldIn, jsonValuesIn, textOf } from './json-answer.js';

/** A call to a model; the caller has bound run, deadline and signal. */
export type Ask = (request: ModelRequest) => Promise<ModelAnswer>;

/** What is wrong with a JSON value by a schema: errors, or none. */
export type OutputErrors = (schema: Readonly<Record<string, unknown>>, value: unknown) => Promise<readonly string[]>;

/** A node and its prompt. */
export interface StepInput {
  readonly node: GraphNode;
  /** The model that it asks. Default: the node's. */
  readonly model?: string;
  /** The output limit that it sends, in tokens. Default: the node's. */
  readonly maxOutputTokens?: number;
  readonly promptInput: PromptInput;
  /** The texts sent to the model, rendered from `promptInput`. */
  readonly rendered: RenderedPrompt;
  /** Ends the step and its calls. */
  readonly signal: CancelSignal;
  /** The tools that it may call, maybe none. Absent: a draft is not searched for calls. */
  readonly kit?: ToolKit;
  /** What is wrong with an answer by a JSON Schema; only a format needs it. */
  readonly outputErrors?: OutputErrors;
}

/**
 * Why an attempt failed: a failure of the model, or an answer that the step cannot use. `model_error` is any other
 * exception.
 */
export type AttemptFailureKind =
  | ModelFailureKind
  | (
      | 'thoughts_only'
      | 'unusable_critique'
      | 'unusable_ranking'
      | 'unusable_analysis'
      | 'unusable_output'
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
  readonly calls?: number;
  readonly lastCall?: ModelUsage;
}

/** What an answer becomes. A role with a new kind of answer adds its own. */
export type StepOutput =
  | { readonly kind: 'drafted'; readonly draft: string }
  | { readonly kind: 'scored'; readonly score: number; readonly feedback: string }
  | { readonly kind: 'ranked'; readonly ranking: readonly string[]; readonly comment: string }
  | { readonly kind: 'analysed'; readonly analysis: Analysis };

export interface Failed {
  readonly kind: 'failed';
  readonly failure: StepFailure;
}

/**
 * Asks the model of a step and reads its answer. An answer without its thoughts becomes the draft. If an answer in JSON is
 * unusable, it asks once more, without tools.
 */
export function execute(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  return EXECUTORS[ROLES[step.promptInput.role].answer](step, ask);
}

const EXECUTORS: Readonly<Record<ModelRequest['answer'], (step: StepInput, ask: Ask) => Promise<StepOutput | Failed>>> =
  { draft, critique, ranking, analysis, output };

function draft(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  return converseWith(requestOf(step), step, ask).then((answer) => readDraft(answer, step));
}

function readDraft(answer: Pick<Conversation, 'text'>, { node, kit }: StepInput): StepOutput | Failed {
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

const CRITIQUE: JsonAnswer = {
  noun: 'critique',
  unusable: 'unusable_critique',
  again: 'Score the draft again.',
  wanted: 'a number "score" from 0 to 10 and a string "feedback"',
  read(answer) {
    const found = readCritique(answer);
    if (found === null) return null;
    const feedback = cutAtSentence(found.feedback, MAX_FEEDBACK_CHARS);
    return { kind: 'scored', score: found.score, feedback };
  },
};

function critique(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  return askForJson(step, ask, CRITIQUE);
}

function ranking(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  const letters = lettersShown(step.promptInput);
  return askForJson(step, ask, {
    noun: 'ranking',
    unusable: 'unusable_ranking',
    again: 'Rank the responses again.',
    wanted: `a list "ranking" of the letters ${enumerated(letters)}, each once, and a string "comment"`,
    read(answer) {
      const found = readRanking(answer, letters);
      return found === null ? null : { kind: 'ranked', ...found };
    },
  });
}

function analysis(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  const letters = lettersShown(step.promptInput);
  return askForJson(step, ask, {
    noun: 'analysis',
    unusable: 'unusable_analysis',
    again: 'Compare the responses again.',
    wanted: `exactly the lists "consensus", "contradictions" ({topic, stances: [{response, stance}]}), "partial_coverage" ({responses, point}), "unique_insights" ({response, insight}) and "blind_spots", each response as one of the letters ${enumerated(letters)}`,
    read(answer) {
      const found = readAnalysis(answer, letters);
      return found === null ? null : { kind: 'analysed', analysis: found };
    },
  });
}

/** How often a format asks again for a valid value. */
const MAX_CORRECTIONS = 2;

/** Asks for a value that is valid by the schema of the node. It becomes the draft, as RFC 8785 JSON. */
async function output(step: StepInput, ask: Ask): Promise<StepOutput | Failed> {
  const { node, promptInput, outputErrors = () => Promise.resolve([]) } = step;
  const { schema = {} } = promptInput;
  const request = requestOf(step);
  const first = await converseWith(request, step, ask).catch(emptyInsteadOfFailure);
  let answer = first.text;
  for (let corrections = 0; ; corrections += 1) {
    let errors: readonly string[] = ['it is no JSON value'];
    for (const [index, value] of jsonValuesIn(answer).entries()) {
      const text = canonicalOrNull(value);
      const found = text === null ? errors : await outputErrors(schema, value);
      if (text !== null && found.length === 0) {
        return isLonger(text, MAX_DRAFT_BYTES) ? tooLarge(node, text) : { kind: 'drafted', draft: text };
      }
      if (index === 0) errors = found;
    }
    const wrong = `the answer was ${quotedAnswer(answer)}, and by the schema of the node: ${errors.join('; ')}.`;
    if (corrections === MAX_CORRECTIONS) {
      return failed('unusable_output', `Cannot use the output of node "${node.id}": ${wrong}`, true);
    }
    const hint = `Your last answer could not be used: ${wrong} Answer again, with the whole JSON value.`;
    const repeated = await ask(withResults(request, first.rounds, hint)).catch(emptyInsteadOfFailure);
    answer = repeated.text;
  }
}

/** Null for numbers and nesting that no canonical JSON has. */
function canonicalOrNull(value: unknown): string | null {
  try {
    return canonical(value);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** How an answer in JSON is read, and the words for an unusable one. */
interface JsonAnswer {
  readonly noun: string;
  readonly unusable: AttemptFailureKind;
  /** What the object must have, for the model and the log. */
  readonly wanted: string;
  /** The sentence that asks once more. */
  readonly again: string;
  readonly read: (answer: string) => StepOutput | null;
}

async function askForJson(
  step: StepInput,
  ask: Ask,
  { noun, unusable, wanted, again: askAgain, read }: JsonAnswer,
): Promise<StepOutput | Failed> {
  const request = requestOf(step);
  const first = await converseWith(request, step, ask).catch(emptyInsteadOfFailure);
  const output = read(first.text);
  if (output !== null) return output;
  const hint = `Your last answer could not be used: ${unusableAnswer(first.text, wanted)} ${askAgain}`;
  const { text } = await ask(withResults(request, first.rounds, hint)).catch(emptyInsteadOfFailure);
  const again = read(text);
  if (again !== null) return again;
  return failed(unusable, `Cannot use the ${noun} of node "${step.node.id}": ${unusableAnswer(text, wanted)}`, true);
}

/** Not `async`, because a call in flight keeps 0.5 kB for each function that awaits it. */
function converseWith(request: ModelRequest, { node, kit, signal }: StepInput, ask: Ask): Promise<Conversation> {
  if (kit === undefined || kit.tools.length === 0) return ask(request).then(({ text }) => ({ text, rounds: [] }));
  return converse(request, ask, { kit, timeoutMs: node.timeoutMs, signal });
}

/** For `catch`: an empty answer in JSON counts as unusable, so that the step asks once more. */
function emptyInsteadOfFailure(error: unknown): Conversation {
  if (error instanceof ModelFailed && (error.data.kind === 'empty_answer' || error.data.kind === 'no_text')) {
    return { text: '', rounds: [] };
  }
  throw error;
}

function requestOf(step: StepInput): ModelRequest {
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

/** The unusable answer and what is wanted, for the model and the log. The answer is quoted as JSON, as data. */
function unusableAnswer(given: string, wanted: string): string {
  return `the answer was ${quotedAnswer(given)}; wanted is one JSON object with ${wanted}.`;
}

function quotedAnswer(given: string): string {
  const { text: answer } = withoutThoughts(given);
  const thoughts = answer.trim() === '' && given.trim() !== '' ? ' after its thoughts' : '';
  const quoted = JSON.stringify(answer.slice(0, QUOTED_CHARS).toWellFormed());
  const rest = answer.length > QUOTED_CHARS ? ' and more' : '';
  return `${quoted}${rest}${thoughts}`;
}

function tooLarge(node: GraphNode, draft: string): Failed {
  const sizes = `${jsonBytes(draft)} bytes as JSON, at most ${MAX_DRAFT_BYTES} allowed`;
  return failed('draft_too_large', `Cannot take the draft of node "${node.id}": ${sizes}`, false);
}

function lettersShown({ answers = [] }: PromptInput): readonly string[] {
  return answers.map(({ letter }) => letter);
}

function failed(kind: AttemptFailureKind, message: string, retryable: boolean): Failed {
  return { kind: 'failed', failure: { kind, message: bounded(message), retryable } };
}

/** The message of a failure, bounded and well-formed. */
export function bounded(message: string): string {
  return message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
}

/** Length of a quoted unusable answer, in UTF-16 units. */
const QUOTED_CHARS = 200;

/** Longest message of a failure, in UTF-16 units: events are bounded, exceptions are not. */
const MAX_MESSAGE_CHARS = 2000;

/** A usable answer of a critic. */
export interface Critique {
  /** Finite, from 0 to 10. */
  readonly score: number;
  /** In well-formed Unicode. */
  readonly feedback: string;
}

/**
 * Reads the object with a `score` in an answer (`answerWith`). The score is a number from 0 to 10 or its text, the feedback a
 * text or a list of lines, empty if missing (contract, section 5). Null if there is none or it is unusable: two scores are
 * ambiguous.
 */
export function readCritique(answer: string): Critique | null {
  const object = answerWith(answer, ['score'], ['feedback']);
  if (object === null) return null;
  const score = scoreOf(fieldIn(object, 'score'));
  const feedback = textOf(fieldIn(object, 'feedback'));
  return score === null || feedback === null ? null : { score, feedback };
}

function scoreOf(given: unknown): number | null {
  const score = typeof given === 'string' ? numberIn(given) : given;
  // JSON writes minus zero as zero, and the adopted state must equal the recorded one.
  return typeof score === 'number' && score >= 0 && score <= 10 ? Math.abs(score) : null;
}

/** The number in a text: as JSON writes it, with a decimal comma, out of ten (`8/10`), or in percent. */
function numberIn(text: string): number | null {
  const [, digits, unit = ''] = NUMBER.exec(text) ?? [];
  if (digits === undefined) return null;
  const number = Number(digits.replace(',', '.'));
  return unit === '%' ? number / 10 : number;
}

/** A number as JSON writes it. */
const NUMBER = /^\s*(-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?)\s*(%|\/\s*10)?\s*$/;
