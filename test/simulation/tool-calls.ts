/**
 * Makes models ask for tools, and checks the calls of tools. A query is unique and names its attempt, so that searches and
 * records can be matched.
 */
import type { ModelRequest, ToolCall } from '../../src/models/port.js';
import type { RunState } from '../../src/run/state.js';
import type { RunRecord } from './record.js';
import type { Draws } from './scheduler.js';

/** Most tool calls of an answer. */
const MAX_AT_ONCE = 3;

export class ToolCalls {
  readonly #must: (holds: boolean, invariant: string, detail: () => string) => void;
  readonly #made = new Set<string>();
  /** The place of the result, by query. */
  readonly #places = new Map<string, number>();
  #asked = 0;

  constructor(must: (holds: boolean, invariant: string, detail: () => string) => void) {
    this.#must = must;
  }

  /** Tool calls of a model in an attempt, some of an unknown tool. */
  askedIn(runId: string, attempt: string, request: ModelRequest, draws: Draws): readonly ToolCall[] {
    const { tools = [], rounds = [] } = request;
    const [tool] = tools;
    if (tool === undefined || !draws.chance(rounds.length === 0 ? 0.7 : 0.4)) return [];
    return Array.from({ length: draws.whole(1, MAX_AT_ONCE) }, () => {
      this.#asked += 1;
      const { name } = draws.pick([tool, ...tools.slice(1)]);
      const query = `${runId} ${attempt} ${this.#asked}`;
      return {
        id: `call-${this.#asked}`,
        name: draws.chance(0.1) ? 'no_tool' : name,
        argumentsJson: JSON.stringify({ query }),
      };
    });
  }

  /** Checks a search that begins. Call the returned function with the place of its result. */
  begun(query: string, { record, run }: Searched): (place: number) => void {
    const attempt = attemptOf(query);
    const isRecorded = record?.attempts.has(attempt) === true;
    this.#must(isRecorded, 'append before act', () => `a tool is called for ${query}, which is not recorded`);
    const isUnderWay =
      run?.progress.frontier.some((at) => at.active && `${at.step}.${at.attempt}` === attempt) === true;
    this.#must(isUnderWay, 'no tool called for what is not under way', () => query);
    const isKnown = this.#made.has(query) || record?.toolResults.has(query) === true;
    this.#must(!isKnown, 'no tool called for after its result was recorded', () => query);
    this.#made.add(query);
    return (place) => void this.#places.set(query, place);
  }

  /** Whether the search found this place. */
  hasFound(query: string, place: number): boolean {
    return this.#places.get(query) === place;
  }
}

export interface Searched {
  readonly record: RunRecord | undefined;
  readonly run: RunState | null;
}

/** The run of a query. */
export function runOfQuery(query: string): string {
  return query.split(' ')[0] ?? '';
}

function attemptOf(query: string): string {
  return query.split(' ')[1] ?? '';
}
