/** Carries out one call a model asks for. Whatever goes wrong with it is a result for the model and a line in the record. */
import type { System } from '../../system/system.js';
import type { ToolArguments, ToolCalledData, ToolHit } from '../../generated/schemas.js';
import type { ToolCall } from '../../models/port.js';
import type { Tool } from './tool.js';
import { section } from '../prompt.js';

/** What is recorded of a call; step, attempt and node are the caller's. */
export type CallRecord = Omit<ToolCalledData, 'step' | 'attempt' | 'node'>;

/** What a node may use in one attempt. */
export interface ToolKit {
  /** The only ones it can call, whatever any text says. */
  readonly tools: readonly Tool[];
  /** Resolves once the call is durable; rejects when the attempt no longer counts. */
  readonly record: (call: CallRecord) => Promise<void>;
  readonly system: Pick<System, 'after' | 'sha256' | 'monotonicMs'>;
}

export interface CallDeps {
  readonly round: number;
  readonly maxBytes: number;
  readonly maxMs: number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/**
 * Runs a call and records it; only then is its result anybody's.
 *
 * @returns the text for the model: data between tags that nothing in it can close
 * @throws when the attempt has ended or cannot be recorded
 */
export async function executeCall(call: ToolCall, kit: ToolKit, terms: CallDeps): Promise<string> {
  const { monotonicMs, sha256 } = kit.system;
  const startedMs = monotonicMs();
  const tool = kit.tools.find((each) => each.name === call.name);
  const found = tool === undefined ? unknownTool(call, kit.tools) : await runTool(tool, call, { kit, terms });
  terms.signal.throwIfAborted();
  const result = resultText(tool, found);
  await kit.record({
    round: terms.round,
    tool: bounded(call.name, MAX_NAME_CHARS),
    arguments: found.arguments ?? bounded(call.argumentsJson, MAX_UNUSABLE_CHARS),
    hits: [...found.hits],
    resultHash: sha256(result),
    resultBytes: utf8Bytes(result),
    error: found.fault,
    durationMs: Math.round(monotonicMs() - startedMs),
  });
  return result;
}

/** Length of a text in bytes of UTF-8. */
export function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

interface Found {
  /** null: they could not be used. */
  readonly arguments: ToolArguments | null;
  readonly text: string;
  readonly hits: readonly ToolHit[];
  readonly fault: string | null;
}

async function runTool(
  tool: Tool,
  call: ToolCall,
  { kit, terms }: { readonly kit: ToolKit; readonly terms: CallDeps },
): Promise<Found> {
  const given = readObject(call.argumentsJson);
  if (given === null) return failure(null, 'The arguments must be one JSON object');
  const read = tool.read(given);
  if (!read.isUsable) return failure(null, read.fault);
  const outcome = await inTime((signal) => tool.run(read.arguments, { signal, maxBytes: terms.maxBytes }), kit, terms);
  if (outcome === 'late') return failure(read.arguments, `No answer came within ${terms.maxMs} ms`);
  if (outcome === 'broken') return failure(read.arguments, 'The tool is out of order');
  if (!outcome.isFound) return failure(read.arguments, outcome.fault);
  if (utf8Bytes(outcome.text) > terms.maxBytes) return failure(read.arguments, 'The result is too long');
  return { arguments: read.arguments, text: outcome.text.toWellFormed(), hits: outcome.hits, fault: null };
}

function unknownTool(call: ToolCall, tools: readonly Tool[]): Found {
  const name = JSON.stringify(bounded(call.name, MAX_NAME_CHARS));
  return failure(null, `There is no tool ${name} for you. You have: ${tools.map((each) => each.name).join(', ')}`);
}

function failure(taken: ToolArguments | null, fault: string): Found {
  return { arguments: taken, text: '', hits: [], fault: bounded(fault, MAX_FAULT_CHARS) };
}

function resultText(tool: Tool | undefined, { text, fault }: Found): string {
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

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Settles by the time given even if the tool never does; rejects only when the attempt ends. */
function inTime<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { system }: ToolKit,
  { maxMs, signal }: CallDeps,
): Promise<T | 'late' | 'broken'> {
  signal.throwIfAborted();
  const call = new AbortController();
  return new Promise<T | 'late' | 'broken'>((resolve, reject) => {
    const withdraw = (): void => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('The attempt has ended'));
      end();
    };
    const cancel = system.after(maxMs, () => {
      resolve('late');
      end();
    });
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', withdraw);
      call.abort();
    };
    signal.addEventListener('abort', withdraw);
    // In a turn of its own, so that what it throws at once counts as what it rejects with.
    Promise.resolve()
      .then(() => run(call.signal))
      .then(resolve, () => resolve('broken'))
      .finally(end);
  });
}

function bounded(text: string, maxChars: number): string {
  return text.slice(0, maxChars).toWellFormed();
}

/** Of a model's arguments, in UTF-16 units; more is no query. */
const MAX_ARGUMENTS_CHARS = 8 * 1024;
/** Of a called name in the record. */
const MAX_NAME_CHARS = 128;
/** Of unusable arguments in the record. */
const MAX_UNUSABLE_CHARS = 1000;
/** Of a failure's reason. */
const MAX_FAULT_CHARS = 500;
