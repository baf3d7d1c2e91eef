/**
 * A node's conversation with its model while it may use tools: executes and records the calls that the model asks for and
 * returns their results, until the model answers. At a limit, it asks once more without tools, with all results in the
 * prompt, so that the model cannot ask for another call.
 */
import { utf8Bytes } from '../graph/limits.js';
import type { ModelAnswer, ModelRequest, ToolCall, ToolRound } from '../models/port.js';
import { withoutThoughts } from '../models/thoughts.js';
import type { ToolKit, ToolUsage } from './tools/call.js';
import { toolLimitReached, callLimits, callsLeft, executeCall } from './tools/call.js';
import type { CancelSignal } from '../system/async/deadline.js';
import { elementAt } from '../system/element.js';

export interface ConversationDeps {
  readonly kit: ToolKit;
  /** Time for all tool calls, from the first on, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: CancelSignal;
}

export interface Conversation {
  readonly text: string;
  readonly rounds: readonly ToolRound[];
}

/** Asks the model and executes its calls until it answers. */
export async function converse(
  request: ModelRequest,
  ask: (request: ModelRequest) => Promise<ModelAnswer>,
  { kit, timeoutMs, signal }: ConversationDeps,
): Promise<Conversation> {
  const tools = kit.tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  const rounds: ToolRound[] = [];
  const clock = stopwatch(kit);
  let spent: ToolUsage = { rounds: 0, calls: 0, bytes: 0, elapsedMs: 0 };
  for (;;) {
    const answer = await ask({ ...request, tools, ...(rounds.length > 0 && { rounds: [...rounds] }) });
    const { text, calls = [], turn, waitedMs } = answer;
    if (calls.length === 0) return { text, rounds };
    spent = { ...spent, elapsedMs: clock(waitedMs) };
    const allowed = calls.slice(0, callsLeft(spent));
    const share = { ...callLimits(spent, allowed.length, timeoutMs), round: rounds.length + 1, signal };
    const results = await allSettledFirst(allowed.map((call) => executeCall(call, kit, share)));
    rounds.push({ text: withoutThoughts(text).text, exchanges: exchangesOf(allowed, results), turn });
    spent = {
      rounds: rounds.length,
      calls: spent.calls + allowed.length,
      bytes: results.reduce((sum, result) => sum + utf8Bytes(result), spent.bytes),
      elapsedMs: clock(),
    };
    const bound = toolLimitReached(spent, timeoutMs);
    if (bound !== null) {
      const refused = calls.length - allowed.length;
      const last = await ask(withResults(request, rounds, closingMessage(bound, refused)));
      return { text: last.text, rounds };
    }
  }
}

/** A request without tools whose prompt ends in all tool results and a closing message. */
export function withResults(request: ModelRequest, rounds: readonly ToolRound[], closing: string): ModelRequest {
  const results = rounds.flatMap(({ exchanges }) => exchanges.map(({ result }) => result));
  return { ...request, prompt: [request.prompt, ...results, closing].join('\n\n') };
}

function closingMessage(bound: string, refused: number): string {
  const dropped = refused === 0 ? '' : ` ${refused} of your last calls were not made.`;
  return `You have no more calls: ${bound}.${dropped} Answer now, from what stands above.`;
}

/** All results. Rejects only after every call has settled, so that no call outlives its attempt. */
async function allSettledFirst(calls: readonly Promise<string>[]): Promise<readonly string[]> {
  await Promise.allSettled(calls);
  return await Promise.all(calls);
}

function exchangesOf(calls: readonly ToolCall[], results: readonly string[]): ToolRound['exchanges'] {
  return calls.map((call, index) => ({ call, result: elementAt(results, index) }));
}

/**
 * A function that returns the milliseconds since its first call, without the time that model calls waited for a slot or
 * a server.
 */
function stopwatch({ system }: ToolKit): (waitedMs?: number) => number {
  let startedMs: number | null = null;
  let totalWaitedMs = 0;
  return (waitedMs = 0) => {
    const nowMs = system.monotonicMs();
    if (startedMs === null) startedMs = nowMs;
    else totalWaitedMs += waitedMs;
    return nowMs - startedMs - totalWaitedMs;
  };
}
