/** What agents can do besides writing. Tools: web search and PDF reader. */
import type { ToolArguments, ToolHit } from '../generated/schemas.js';
import type { ToolDeclaration, ToolName } from '../model/port.js';

/** What came of reading a model's arguments. `fault` is told to the model. */
export type ArgumentsRead =
  { readonly isUsable: true; readonly arguments: ToolArguments } | { readonly isUsable: false; readonly fault: string };

/** What came of a call. A failure is told to the model, which may go on without: it never fails a run. */
export type ToolOutcome =
  | { readonly isFound: true; readonly text: string; readonly hits: readonly ToolHit[] }
  | { readonly isFound: false; readonly fault: string };

export interface ToolLimits {
  readonly signal: AbortSignal;
  /** Most that the text may take, in bytes of UTF-8. */
  readonly maxBytes: number;
}

/** What models are told of it stands in its declaration. */
export interface Tool extends ToolDeclaration {
  /** The field of a node's `tools` that grants it. */
  readonly grant: ToolName;
  /** Whether a node that starts now can be given it. */
  isAvailable(): boolean;
  /** Takes what the tool knows out of a model's arguments and drops the rest. */
  read(given: Readonly<Record<string, unknown>>): ArgumentsRead;
  /**
   * Finds what fits. `hits` name what stands in `text`, in its order. Text from outside is well-formed, and nothing in
   * it can close the tags the tool puts around it.
   */
  run(given: ToolArguments, limits: ToolLimits): Promise<ToolOutcome>;
}

/** The tools of an instance. */
export interface Toolbox {
  /** What a node that starts now can be given. */
  available(): readonly ToolName[];
  /** The tools behind grants, whether or not there is anything left to find with them. */
  granted(grants: readonly ToolName[]): readonly Tool[];
}
