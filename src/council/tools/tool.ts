/** Tools of nodes: which tools a node has, what a tool is, and how it renders its results. */
import type { NodeTools, ToolArguments, ToolHit } from '../../generated/schemas.js';
import { utf8Bytes } from '../../graph/limits.js';
import type { PromptInput, ToolDeclaration, ToolName } from '../../models/port.js';

/** The tools of a node as its start records them: `webSearch: unavailable` is granted but not available now. */
export function toolsAsRecorded(tools: NodeTools, isAvailable: Toolbox['isAvailable']): string[] {
  return TOOL_NAMES.filter((tool) => tools[tool]).map((tool) => (isAvailable(tool) ? tool : unavailable(tool)));
}

/** The part of a prompt input that names the recorded tools. */
export function renderedTools(recorded: readonly string[]): Pick<PromptInput, 'tools' | 'missingTools'> {
  if (recorded.length === 0) return {};
  const tools = grantedTools(recorded);
  const missingTools = TOOL_NAMES.filter((tool) => recorded.includes(unavailable(tool)));
  return { ...(tools.length > 0 && { tools }), ...(missingTools.length > 0 && { missingTools }) };
}

/** The tools that a node may call, as recorded at its start. No text can change them. */
export function grantedTools(recorded: readonly string[]): readonly ToolName[] {
  return TOOL_NAMES.filter((tool) => recorded.includes(tool));
}

function unavailable(tool: ToolName): string {
  return `${tool}: unavailable`;
}

const TOOL_NAMES: readonly ToolName[] = ['webSearch', 'pdfReader'];

/** A model's arguments after reading. The model receives `fault`. */
export type ArgumentsRead =
  | { readonly isUsable: true; readonly arguments: ToolArguments }
  | { readonly isUsable: false; readonly fault: string };

/** The outcome of a call. The model receives a fault as a result: it never fails a run. */
export type ToolOutcome =
  | { readonly isFound: true; readonly text: string; readonly hits: readonly ToolHit[] }
  | { readonly isFound: false; readonly fault: string };

export interface ToolLimits {
  readonly signal: AbortSignal;
  /** Ids of the documents that may be searched. Absent: all. */
  readonly documents?: readonly string[] | undefined;
  /** Longest text, in bytes of UTF-8. */
  readonly maxBytes: number;
}

/** A tool: its declaration for models, and its execution. */
export interface Tool extends ToolDeclaration {
  /** The field of a node's `tools` that grants it. */
  readonly grant: ToolName;
  /** Whether a node that starts now can use it. */
  isAvailable(): boolean;
  /** Reads the known arguments of a model's call; ignores others. */
  read(given: Readonly<Record<string, unknown>>): ArgumentsRead;
  /**
   * Executes a call. `hits` are the items in `text`, in the same order. Text from outside is well-formed, and nothing in it
   * can close the tags around it.
   */
  run(given: ToolArguments, limits: ToolLimits): Promise<ToolOutcome>;
}

/** The tools of an instance. */
export interface Toolbox {
  /** Whether a node that starts now can use the tool of a grant. */
  readonly isAvailable: (grant: ToolName) => boolean;
  /** The tools of these grants, available or not. */
  granted(grants: readonly ToolName[]): readonly Tool[];
}

export function toolbox(tools: readonly Tool[]): Toolbox {
  return {
    isAvailable: (grant) => tools.some((tool) => tool.grant === grant && tool.isAvailable()),
    granted: (grants) => tools.filter((tool) => grants.includes(tool.grant)),
  };
}

/** A query from a model's argument: one line, well-formed, cut to its limit, or null if it is unusable. */
export function queryOf(given: unknown, maxCodePoints: number): string | null {
  if (typeof given !== 'string') return null;
  const line = given
    .slice(0, 4 * maxCodePoints)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const query = [...line].slice(0, maxCodePoints).join('').trim();
  return query === '' ? null : query;
}

/** A count between bounds: a number, also as text, is rounded and clamped; anything else is the fallback. */
export function countOf(
  given: unknown,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number {
  const number = typeof given === 'string' && /^\d{1,6}$/.test(given.trim()) ? Number(given) : given;
  if (typeof number !== 'number' || Number.isNaN(number)) return fallback;
  return Math.min(max, Math.max(min, Math.round(number)));
}

// Renders results as data: each item between tags that nothing inside can close.

/** A result: the attributes of its opening tag, and its text. */
export interface FoundItem<Hit> {
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
  /** @param shown the text, or its beginning if it was cut */
  readonly hitOf: (shown: string) => Hit;
}

/**
 * As many complete items as fit, in order, each as `<tag name="value">`, text, `</tag>`. Only a first item that does not
 * fit is cut.
 *
 * @param maxBytes limit of the whole text, in bytes of UTF-8
 */
export function renderItems<Hit>(
  tag: 'passage' | 'page',
  items: readonly FoundItem<Hit>[],
  maxBytes: number,
): { readonly text: string; readonly hits: readonly Hit[] } {
  const written: string[] = [];
  const hits: Hit[] = [];
  let room = maxBytes;
  for (const { attributes, text, hitOf } of items) {
    const [head, body, tail] = [opening(tag, attributes), escaped(text), `\n</${tag}>`];
    const bodyRoom = room - utf8Bytes(head) - utf8Bytes(tail) - BETWEEN.length;
    if (bodyRoom < utf8Bytes(body) && (hits.length > 0 || bodyRoom < MIN_CUT_BYTES)) break;
    const shown = cutTo(body, bodyRoom);
    const rendered = `${head}${shown}${tail}`;
    room -= utf8Bytes(rendered) + BETWEEN.length;
    written.push(rendered);
    hits.push(hitOf(shown === body ? text.toWellFormed() : shown));
  }
  if (items.length === 0) return { text: 'Nothing was found.', hits };
  return { text: hits.length === 0 ? 'There is no room left for what was found.' : written.join(BETWEEN), hits };
}

function opening(tag: string, attributes: Readonly<Record<string, string>>): string {
  const shown = Object.entries(attributes).map(([name, value]) => ` ${name}="${attributeText(value)}"`);
  return `<${tag}${shown.join('')}>\n`;
}

/** One line, without characters that end an attribute or a tag. */
function attributeText(value: string): string {
  return value
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/["<>]/g, "'");
}

/**
 * Well-formed, without our tags: `<` before their names becomes `&lt;`, also for sections of a prompt, so that the length
 * does not change in the prompt. Models accept a tag with a few blanks in it. Linear in the text.
 */
function escaped(text: string): string {
  return text.toWellFormed().replace(OUR_TAGS, '&lt;');
}

const OUR_TAGS = /<(?=[\s/]{0,8}(?:passage|page|tool_result|topic|draft|feedback)\b)/gi;

/** The start of a text in at most so many bytes of UTF-8, without half a character. */
function cutTo(text: string, maxBytes: number): string {
  if (utf8Bytes(text) <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text).subarray(0, Math.max(0, maxBytes - CUT.length));
  // A decoder in stream mode drops half a character at the end.
  return `${new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })}${CUT}`;
}

const BETWEEN = '\n\n';
const CUT = '\n[cut]';
/** Shortest part of an item to show. */
const MIN_CUT_BYTES = 200;
