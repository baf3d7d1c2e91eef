/** Executes a model's tool call. A failure is recorded and returned to the model, like a success. */
import type { CancelSignal, Deadline } from '../../system/async/deadline.js';
import { inTime } from '../../system/async/deadline.js';
import type { System } from '../../system/system.js';
import type { ToolArguments, ToolCalledData, ToolHit } from '../../generated/schemas.js';
import type { ToolCall } from '../../models/port.js';
import type { Tool, ToolOutcome } from './tool.js';
import { utf8Bytes } from '../../graph/limits.js';
import { section } from '../prompt.js';
import { isRecord } from '../../system/untrusted.js';

/** The recorded data of a call, without step, attempt and node. */
export type CallRecord = Omit<ToolCalledData, 'step' | 'attempt' | 'node'>;

/** The tools of one attempt. */
export interface ToolKit {
  /** The only tools that the node can call. A prompt cannot add one. */
  readonly tools: readonly Tool[];
  /** Ids of the documents that the run may search. Absent: all. */
  readonly documents?: readonly string[] | undefined;
  /** Resolves when the call is durable. Rejects when the attempt no longer counts. */
  readonly record: (call: CallRecord) => Promise<void>;
  readonly system: Pick<System, 'after' | 'sha256' | 'monotonicMs'>;
}

export interface CallOptions {
  readonly round: number;
  readonly maxBytes: number;
  readonly maxMs: number;
  /** Ends the attempt. */
  readonly signal: CancelSignal;
}

/**
 * Executes a call, records it, then returns its result.
 *
 * @returns the text for the model: data between tags that nothing inside can close
 * @throws when the attempt has ended or cannot be recorded
 */
export async function executeCall(call: ToolCall, kit: ToolKit, options: CallOptions): Promise<string> {
  const { monotonicMs, sha256 } = kit.system;
  const startedMs = monotonicMs();
  const tool = kit.tools.find((each) => each.name === call.name);
  const result = tool === undefined ? unknownTool(call, kit.tools) : await runTool(tool, call, { kit, options });
  options.signal.throwIfAborted();
  const text = resultText(tool, result);
  await kit.record({
    round: options.round,
    tool: bounded(call.name, MAX_NAME_CHARS),
    arguments: result.arguments ?? bounded(call.argumentsJson, MAX_UNUSABLE_CHARS),
    hits: [...result.hits],
    resultHash: sha256(text),
    resultBytes: utf8Bytes(text),
    error: result.fault,
    durationMs: Math.round(monotonicMs() - startedMs),
  });
  return text;
}

interface CallResult {
  /** Null if they are unusable. */
  readonly arguments: ToolArguments | null;
  readonly text: string;
  readonly hits: readonly ToolHit[];
  readonly fault: string | null;
}

async function runTool(
  tool: Tool,
  call: ToolCall,
  { kit, options }: { readonly kit: ToolKit; readonly options: CallOptions },
): Promise<CallResult> {
  const given = readObject(call.argumentsJson);
  if (given === null) return failure(null, 'The arguments must be one JSON object');
  const read = tool.read(given);
  if (!read.isUsable) return failure(null, read.fault);
  const { documents, system } = kit;
  const run = (signal: AbortSignal): Promise<ToolOutcome> =>
    tool.run(read.arguments, { signal, documents, maxBytes: options.maxBytes });
  const outcome = await runWithDeadline(run, { ...options, system });
  if (outcome === 'late') return failure(read.arguments, `No answer came within ${options.maxMs} ms`);
  if (outcome === 'broken') return failure(read.arguments, 'The tool is out of order');
  if (!outcome.isFound) return failure(read.arguments, outcome.fault);
  if (utf8Bytes(outcome.text) > options.maxBytes) return failure(read.arguments, 'The result is too long');
  return { arguments: read.arguments, text: outcome.text.toWellFormed(), hits: outcome.hits, fault: null };
}

/** Settles by the deadline even if the tool does not. Rejects only when the attempt ends. */
async function runWithDeadline<T>(
  run: (signal: AbortSignal) => Promise<T>,
  deadline: Deadline,
): Promise<T | 'late' | 'broken'> {
  const { signal } = deadline;
  const late = new Error('The tool is late');
  try {
    return await inTime(async (call) => run(call.signal), { late: () => late, ...deadline });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return error === late ? 'late' : 'broken';
  }
}

function unknownTool(call: ToolCall, tools: readonly Tool[]): CallResult {
  const name = JSON.stringify(bounded(call.name, MAX_NAME_CHARS));
  return failure(null, `There is no tool ${name} for you. You have: ${tools.map((each) => each.name).join(', ')}`);
}

function failure(given: ToolArguments | null, fault: string): CallResult {
  return { arguments: given, text: '', hits: [], fault: bounded(fault, MAX_FAULT_CHARS) };
}

function resultText(tool: Tool | undefined, { text, fault }: CallResult): string {
  const name = tool === undefined ? '' : ` tool="${tool.name}"`;
  return fault === null
    ? section('tool_result', name, text)
    : section('tool_result', `${name} failed="yes"`, `The call failed. ${fault}.`);
}

function readObject(json: string): Readonly<Record<string, unknown>> | null {
  if (json.length > MAX_ARGUMENTS_CHARS) return null;
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

function bounded(text: string, maxChars: number): string {
  return text.slice(0, maxChars).toWellFormed();
}

/** Longest arguments of a call, in UTF-16 units. */
const MAX_ARGUMENTS_CHARS = 8 * 1024;
/** Longest recorded name of a tool. */
const MAX_NAME_CHARS = 128;
/** Longest recorded unusable arguments. */
const MAX_UNUSABLE_CHARS = 1000;
/** Longest reason of a failure. */
const MAX_FAULT_CHARS = 500;

// Limits of tools in one attempt, and the message to the model at a limit.

/** Most answers that ask for tools; each needs another call to the model. */
const MAX_ROUNDS_PER_ATTEMPT = 5;

/** Most tool calls, including failed ones; each is an event. */
const MAX_CALLS_PER_ATTEMPT = 8;

/** Limit of all results, in bytes of UTF-8: each further round sends them again. */
const MAX_BYTES_PER_ATTEMPT = 64 * 1024;

/** Limit of one result, in bytes of UTF-8. */
const MAX_RESULT_BYTES = 24 * 1024;

/** Least free space for a further call, in bytes of UTF-8. */
const MIN_RESULT_BYTES = 2 * 1024;

/** Deadline of one tool call, in milliseconds. */
const MAX_CALL_MS = 20_000;

/** An attempt's use of its tools so far. */
export interface ToolUsage {
  readonly rounds: number;
  readonly calls: number;
  readonly bytes: number;
  /** Time since the model first asked for a tool, in milliseconds, without waiting for a slot. */
  readonly elapsedMs: number;
}

/** How many more calls are allowed. */
export function callsLeft({ calls }: ToolUsage): number {
  return MAX_CALLS_PER_ATTEMPT - calls;
}

/** The limits of each of several calls at once, in bytes and whole milliseconds. */
export function callLimits(spent: ToolUsage, calls: number, timeoutMs: number): { maxBytes: number; maxMs: number } {
  return {
    maxBytes: Math.min(MAX_RESULT_BYTES, Math.floor((MAX_BYTES_PER_ATTEMPT - spent.bytes) / calls)),
    maxMs: Math.max(1, Math.ceil(Math.min(MAX_CALL_MS, timeoutMs - spent.elapsedMs))),
  };
}

/** The limit that an attempt has reached, in words for its model, or null if it may continue. */
export function toolLimitReached(spent: ToolUsage, timeoutMs: number): string | null {
  if (spent.calls >= MAX_CALLS_PER_ATTEMPT) return `no more than ${MAX_CALLS_PER_ATTEMPT} calls of tools are allowed`;
  if (spent.rounds >= MAX_ROUNDS_PER_ATTEMPT)
    return `no more than ${MAX_ROUNDS_PER_ATTEMPT} rounds of calls are allowed`;
  if (MAX_BYTES_PER_ATTEMPT - spent.bytes < MIN_RESULT_BYTES) return 'there is no room for more results';
  if (spent.elapsedMs >= timeoutMs) return 'there is no time for more calls';
  return null;
}
