/** Tools of nodes: which are granted and recorded, what a tool is, and how it renders what it has found. */
import type { NodeTools, ToolArguments, ToolHit } from '../../generated/schemas.js';
import { utf8Bytes } from '../../graph/limits.js';
import type { PromptInput, ToolDeclaration, ToolName } from '../../models/port.js';

/** The tools of a node as its start is recorded: `webSearch: unavailable` is one it is granted and does not have now. */
export function toolsAsRecorded(tools: NodeTools, available: readonly ToolName[]): string[] {
  return TOOL_NAMES.filter((tool) => tools[tool]).map((tool) => (available.includes(tool) ? tool : unavailable(tool)));
}

/** The part of a prompt input that names the recorded tools. */
export function renderedTools(recorded: readonly string[]): Pick<PromptInput, 'tools' | 'missingTools'> {
  const tools = grantedTools(recorded);
  const missingTools = TOOL_NAMES.filter((tool) => recorded.includes(unavailable(tool)));
  return { ...(tools.length > 0 && { tools }), ...(missingTools.length > 0 && { missingTools }) };
}

/** The tools that were recorded as given. What a node may call is decided by this alone, never by a text. */
export function grantedTools(recorded: readonly string[]): readonly ToolName[] {
  return TOOL_NAMES.filter((tool) => recorded.includes(tool));
}

function unavailable(tool: ToolName): string {
  return `${tool}: unavailable`;
}

const TOOL_NAMES: readonly ToolName[] = ['webSearch', 'pdfReader'];

/** The result of reading a model's arguments. `fault` is sent to the model. */
export type ArgumentsRead =
  | { readonly isUsable: true; readonly arguments: ToolArguments }
  | { readonly isUsable: false; readonly fault: string };

/** The outcome of a call. A failure is sent to the model, which may continue without: it never fails a run. */
export type ToolOutcome =
  | { readonly isFound: true; readonly text: string; readonly hits: readonly ToolHit[] }
  | { readonly isFound: false; readonly fault: string };

export interface ToolLimits {
  readonly signal: AbortSignal;
  /** Most that the text may take, in bytes of UTF-8. */
  readonly maxBytes: number;
}

/** A tool: its declaration for models, and what it does. */
export interface Tool extends ToolDeclaration {
  /** The field of a node's `tools` that grants it. */
  readonly grant: ToolName;
  /** Whether a node that starts now can use it. */
  isAvailable(): boolean;
  /** Reads the known arguments from those a model gives and drops the rest. */
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

/** A query from a model's argument: one line, well-formed, cut; null when it is unusable. */
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

/** A count between bounds: numbers are rounded and clamped, also when given as text; else the fallback. */
export function countOf(
  given: unknown,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number {
  const number = typeof given === 'string' && /^\d{1,6}$/.test(given.trim()) ? Number(given) : given;
  if (typeof number !== 'number' || Number.isNaN(number)) return fallback;
  return Math.min(max, Math.max(min, Math.round(number)));
}

// Renders what a tool has found as data: each item between tags that nothing inside can close.

/** An item found: the attributes of its opening tag, and its text. */
export interface FoundItem<Hit> {
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
  readonly hit: Hit;
}

/**
 * As many items as fit, in order, each as `<tag name="value">`, text, `</tag>`. What does not fit is left out whole;
 * only a first item longer than all the room is cut.
 *
 * @param maxBytes room for the whole text, in bytes of UTF-8
 */
export function renderItems<Hit>(
  tag: 'passage' | 'page',
  items: readonly FoundItem<Hit>[],
  maxBytes: number,
): { readonly text: string; readonly hits: readonly Hit[] } {
  const written: string[] = [];
  const hits: Hit[] = [];
  let room = maxBytes;
  for (const { attributes, text, hit } of items) {
    const [head, body, tail] = [opening(tag, attributes), escaped(text), `\n</${tag}>`];
    const bodyRoom = room - utf8Bytes(head) - utf8Bytes(tail) - BETWEEN.length;
    if (bodyRoom < utf8Bytes(body) && (hits.length > 0 || bodyRoom < MIN_CUT_BYTES)) break;
    const whole = `${head}${cutTo(body, bodyRoom)}${tail}`;
    room -= utf8Bytes(whole) + BETWEEN.length;
    written.push(whole);
    hits.push(hit);
  }
  if (items.length === 0) return { text: 'Nothing was found.', hits };
  return { text: hits.length === 0 ? 'There is no room left for what was found.' : written.join(BETWEEN), hits };
}

function opening(tag: string, attributes: Readonly<Record<string, string>>): string {
  const shown = Object.entries(attributes).map(([name, value]) => ` ${name}="${attributeText(value)}"`);
  return `<${tag}${shown.join('')}>\n`;
}

/** On one line, without what ends an attribute or a tag. */
function attributeText(value: string): string {
  return value
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/["<>]/g, "'");
}

/**
 * Well-formed, without tags of ours: `<` before such a name becomes `&lt;`, those of a prompt's sections too, so that
 * it is as long here as where it is shown. Models read a tag with a few blanks in it as one. Linear in the text.
 */
function escaped(text: string): string {
  return text.toWellFormed().replace(OUR_TAGS, '&lt;');
}

const OUR_TAGS = /<(?=[\s/]{0,8}(?:passage|page|tool_result|topic|draft|feedback)\b)/gi;

/** The beginning of a text that takes at most so many bytes of UTF-8; cuts no character in two. */
function cutTo(text: string, maxBytes: number): string {
  if (utf8Bytes(text) <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text).subarray(0, Math.max(0, maxBytes - CUT.length));
  // A character cut in two at the end is dropped by a decoder that expects more.
  return `${new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })}${CUT}`;
}

const BETWEEN = '\n\n';
const CUT = '\n[cut]';
/** Least part of an item worth showing. */
const MIN_CUT_BYTES = 200;
