/** The language model as the council sees it. Adapters: offline (no network) and Gemini. */

/** A tool, by its name in a node's `tools`. */
export type ToolName = 'webSearch' | 'pdfReader';

/** What a prompt is made of. Adapters of real models send `system` and `prompt`; the offline model reads this. */
export interface Brief {
  readonly label: string;
  readonly role: 'agent' | 'critic';
  readonly systemPrompt: string;
  readonly topic: string;
  readonly draft: string | null;
  /** Oldest first. */
  readonly feedback: readonly string[];
  /** Tools the node was promised and does not have; absent: none. */
  readonly missingTools?: readonly ToolName[];
}

export interface ModelRequest {
  /** Absent: the adapter's default model. */
  readonly model?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly system: string;
  readonly prompt: string;
  readonly brief: Brief;
  /** `critique` asks for JSON as in schemas/critic-answer.json, `text` for prose. */
  readonly answer: 'text' | 'critique';
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ModelAnswer {
  readonly text: string;
  readonly usage: ModelUsage;
}

export interface LanguageModel {
  /** Name of the provider, as in MODEL_PROVIDER. */
  readonly provider: string;
  /** Name of the model used when a request names none. */
  readonly defaultModel: string;
  /**
   * One call to the model, no retry. The caller sets the deadline by the signal.
   *
   * @throws {ModelFailed} whatever goes wrong, by kind
   */
  ask(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer>;
}
