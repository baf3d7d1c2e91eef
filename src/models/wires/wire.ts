/** What a wire (chat completions, Anthropic's messages, Gemini) adds to the one adapter of all providers. */
import type { LanguageModelV3, SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { AnswerReader, ServerCall } from '../server-call.js';
import type { ModelUsage } from '../port.js';

export interface WireOptions {
  /** Base URL of the API with its version, without a trailing slash. */
  readonly baseUrl: string;
  /** Visible ASCII, or null if the server asks for none. */
  readonly apiKey: string | null;
}

/** How a request is put, because servers differ in what they accept. A server's refusal changes one of them at a time. */
export interface RequestForm {
  /** How the JSON of a critic, reviewer or judge is asked for. */
  readonly json: 'schema' | 'object' | 'prompt';
  /** Whether a schema may stand beside tools: several servers refuse both together. */
  readonly schemaBesideTools: boolean;
  /** Name of the limit on output tokens in chat completions: newer OpenAI models accept only the second. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Whether the node's temperature is sent. */
  readonly temperature: boolean;
  /** Whether the system prompt has a message of its own; else it begins the first user message. */
  readonly systemRole: boolean;
  /** Whether the model's reasoning is sent back beside its tool calls. */
  readonly reasoning: boolean;
  /** Whether a stream is asked to report its usage. */
  readonly usageInStream: boolean;
  readonly streams: boolean;
}

/** How a package's model makes its requests. */
export interface RequestPut {
  readonly form: RequestForm;
  /** The limit on output tokens, which the package must not change. If absent, the package sets its own. */
  readonly maxOutputTokens?: number | undefined;
  readonly fetch: typeof globalThis.fetch;
}

export interface Wire {
  /** Headers of each request in place of those the package sends; null values are not sent. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** The package's model by its name. @throws {ModelFailed} `model_unusable` for a name that could lead to another address */
  model(name: string, put: RequestPut): LanguageModelV3;
  /** Marks the end of what the provider should cache. Absent: the provider caches by itself, or not. */
  readonly cacheMark?: SharedV3ProviderOptions;
  /** A new reader for the answer of a call. */
  reader(call: ServerCall): WireReader;
}

export interface WireReader extends AnswerReader {
  /** The counts that the provider has reported so far. */
  usage(): ModelUsage;
  /** What the model's message carries back beside its parts, if anything. */
  turnOptions?(): SharedV3ProviderOptions | undefined;
}

/** The form to try first. */
export const FIRST_FORM: RequestForm = {
  json: 'schema',
  schemaBesideTools: true,
  limit: 'max_tokens',
  temperature: true,
  systemRole: true,
  reasoning: true,
  usageInStream: true,
  streams: true,
};
