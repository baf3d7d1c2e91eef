/** How much a node may use its tools in one attempt, and the message to its model when that is used up. */

/** Most answers that ask for tools; each means one more call to the model. */
export const MAX_TOOL_ROUNDS = 5;

/** Most tool calls in all, failed ones included; each is an event. */
export const MAX_TOOL_CALLS = 8;

/** What all results together may take, in bytes of UTF-8: they are sent to the model again in every further round. */
export const MAX_TOOL_BYTES = 64 * 1024;

/** What one result may take, in bytes of UTF-8. */
const MAX_RESULT_BYTES = 24 * 1024;

/** Least size worth leaving for a result. */
const MIN_RESULT_BYTES = 2 * 1024;

/** How long one call of a tool may take, in milliseconds. */
const MAX_CALL_MS = 20_000;

/** What an attempt has used of its tools so far. */
export interface ToolSpending {
  readonly rounds: number;
  readonly calls: number;
  readonly bytes: number;
  /** Since the model first asked for a tool, in milliseconds; without the time its calls waited for their turn. */
  readonly elapsedMs: number;
}

/** How many more calls may be made. */
export function callsLeft({ calls }: ToolSpending): number {
  return MAX_TOOL_CALLS - calls;
}

/** Room for each of some calls made at once, in bytes and whole milliseconds: it does not depend on the others' results. */
export function shareOf(spent: ToolSpending, calls: number, timeoutMs: number): { maxBytes: number; maxMs: number } {
  return {
    maxBytes: Math.min(MAX_RESULT_BYTES, Math.floor((MAX_TOOL_BYTES - spent.bytes) / calls)),
    maxMs: Math.max(1, Math.ceil(Math.min(MAX_CALL_MS, timeoutMs - spent.elapsedMs))),
  };
}

/** The bound an attempt has reached, in words for its model; null when it may continue. */
export function boundReached(spent: ToolSpending, timeoutMs: number): string | null {
  if (spent.calls >= MAX_TOOL_CALLS) return `no more than ${MAX_TOOL_CALLS} calls of tools are allowed`;
  if (spent.rounds >= MAX_TOOL_ROUNDS) return `no more than ${MAX_TOOL_ROUNDS} rounds of calls are allowed`;
  if (MAX_TOOL_BYTES - spent.bytes < MIN_RESULT_BYTES) return 'there is no room for more results';
  if (spent.elapsedMs >= timeoutMs) return 'there is no time for more calls';
  return null;
}
