/** The language model as the council sees it. Adapters: offline (no network), and one for every provider. */
import type { ModelUsage } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { CancelSignal } from '../system/async/deadline.js';
import type { Analysis, NodeRole } from '../generated/schemas.js';

export type { ModelUsage } from '../errors.js';

/** A tool, by its name in a node's `tools`. */
export type ToolName = 'webSearch' | 'pdfReader';

/** What a prompt is made of. Adapters of real models send `system` and `prompt`; the offline model reads this. */
export interface PromptInput {
  readonly label: string;
  readonly role: NodeRole;
  readonly systemPrompt: string;
  readonly topic: string;
  /** The text that the council works on; absent: none. */
  readonly material?: string;
  readonly draft: string | null;
  /** Oldest first. */
  readonly feedback: readonly string[];
  /** The anonymous answers of a panel, which stand in place of the draft; absent: none. */
  readonly answers?: readonly LetteredAnswer[];
  /** The points of these answers, best first; absent: they are not ranked. */
  readonly ranking?: readonly { readonly letter: string; readonly points: number }[];
  /** A judge's comparison of these answers, in the letters shown here; absent: none. */
  readonly analysis?: Analysis;
  /** The JSON Schema of a format's answer; absent: it is none. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Tools the node has; absent: none. */
  readonly tools?: readonly ToolName[];
  /** Tools the node asks for and does not have; absent: none. */
  readonly missingTools?: readonly ToolName[];
}

/** An answer of a panel as a reader sees it. */
export interface LetteredAnswer {
  /** `A`, `B`, … in the order shown. */
  readonly letter: string;
  readonly text: string;
}

/** A tool as it is offered to a model. */
export interface ToolDeclaration {
  /** Letters, digits and `_`. */
  readonly name: string;
  readonly description: string;
  readonly parameters: ToolParameters;
}

/** JSON Schema of a tool's arguments, as far as every provider's dialect knows it. */
export interface ToolParameters {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, { readonly type: 'string' | 'integer'; readonly description: string }>>;
  readonly required: readonly string[];
}

/** Most calls of one answer; those that follow are left out. A step makes fewer. */
export const MAX_CALLS = 128;

/** One call a model asks for. All of it is the model's own text. */
export interface ToolCall {
  /** Unique in its conversation. */
  readonly id: string;
  readonly name: string;
  /** JSON text; may be malformed. */
  readonly argumentsJson: string;
}

/** An answer with tool calls, and their results, in its order. */
export interface ToolRound {
  /** What the model said beside its calls, often nothing. */
  readonly text: string;
  readonly exchanges: readonly { readonly call: ToolCall; readonly result: string }[];
  /** The `turn` of the answer; only its adapter reads it. */
  readonly turn?: unknown;
}

export interface ModelRequest {
  /** Absent: the adapter's default model. */
  readonly model?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly system: string;
  /** The text before the prompt, in the same message, as data; the same for every call of a run. Absent: none. */
  readonly material?: string;
  readonly prompt: string;
  readonly promptInput: PromptInput;
  /**
   * `draft` asks for prose; the others for JSON: `critique` as in schemas/critic-answer.json, `ranking` as in
   * schemas/ranking-answer.json, `analysis` as in schemas/analysis.json, `output` as in the schema of the prompt's input.
   */
  readonly answer: 'draft' | 'critique' | 'ranking' | 'analysis' | 'output';
  /** Tools the model may call instead of answering; absent: none. */
  readonly tools?: readonly ToolDeclaration[];
  /** The conversation after the prompt, oldest first; only beside `tools`. */
  readonly rounds?: readonly ToolRound[];
  /** Receives the text in chunks as it comes, before it is known whether the answer is usable; absent: no streaming. */
  readonly onToken?: (text: string) => void;
  /** Called when a request is made, perhaps a repeated one: tokens received before are void. Goes with `onToken`. */
  readonly onStart?: () => void;
  /**
   * Called before a request is made again that may have been billed (`billing.ts`), with its usage, or null if that is
   * unknown. The request is made again once this resolves, and not if it rejects.
   */
  readonly beforeRepeat?: (usage: ModelUsage | null) => Promise<void>;
}

export interface ModelAnswer {
  /** The answer; beside calls what the model said with them, often nothing. */
  readonly text: string;
  readonly usage: ModelUsage;
  /** Tools to call before it answers, at most `MAX_CALLS`; absent: the text is the answer. */
  readonly calls?: readonly ToolCall[];
  /** The model's own message beside `calls`, for its adapter: it goes into the next request's rounds. */
  readonly turn?: unknown;
  /** The parts of the request that were left out because the server does not accept them: `temperature`, `system_role`. */
  readonly dropped?: readonly string[];
  /** The provider's finish reason if it is unknown here; at most 60 UTF-16 units. */
  readonly finish?: string;
  /** How long the call waited before it was made, in milliseconds; absent: not at all. */
  readonly waitedMs?: number;
}

/** The conditions of a call. Node creates a controller's signal on first access: models that never abort skip it. */
export interface ModelCall {
  /** Ends the call. */
  readonly signal: AbortSignal;
}

/** A provider that can be asked. */
export interface ProviderInfo {
  readonly name: string;
  readonly api: string;
  /** Host of its API with the port, or null for the offline model. */
  readonly host: string | null;
  readonly defaultModel: string;
}

export interface LanguageModel {
  /** Name of the provider, as in MODEL_PROVIDER. */
  readonly provider: string;
  /** Name of the model used when a request names none. */
  readonly defaultModel: string;
  /** The full name of a node's model, as `provider/model`. Absent: names are used as they are. */
  readonly fullName?: (model: string | undefined) => string;
  /** The providers behind it, the default first. Absent: `provider` alone. */
  readonly providers?: readonly ProviderInfo[];
  /** Calls that single providers take at once, by their names. Absent: no provider has a bound of its own. */
  readonly maxCalls?: ReadonlyMap<string, number>;
  /**
   * One call to the model, no retry. The caller sets the deadline by the call's signal.
   *
   * @throws {ModelFailed} for every failure, by kind
   */
  ask(request: ModelRequest, call: ModelCall): Promise<ModelAnswer>;
}

/** The provider in a model's full name, `provider/model`, or an empty text if the name has none. */
export function providerOf(fullName: string): string {
  return fullName.slice(0, Math.max(0, fullName.indexOf('/')));
}

/** The failure of a call that was aborted; the signal's reason is the cause. */
export function callAborted(signal: Pick<CancelSignal, 'reason'>): ModelFailed {
  return new ModelFailed(
    'Call to the model was aborted',
    { kind: 'aborted', retryable: true },
    { cause: signal.reason },
  );
}
