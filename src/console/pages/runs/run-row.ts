/** What the list keeps of a run: a row, and what an event of the feed changes in it. */
import type { FeedEvent } from '../../../client/feed.js';
import type { HistoryRecord } from '../../../generated/schemas.js';

/** Most of a text that a row keeps: a topic may have 10,000 characters, and a list 100,000 runs. */
const TEXT_CHARS = 240;

export interface RunRow {
  readonly id: string;
  readonly topic: string;
  readonly status: HistoryRecord['status'];
  readonly isGodMode: boolean;
  /** Null: the built-in council. */
  readonly blueprintId: string | null;
  readonly actor: string | null;
  readonly score: number | null;
  readonly iterations: number | null;
  /** Null: no call has told any. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly createdAt: string | null;
  /** Null: it goes on. */
  readonly durationMs: number | null;
  /** Since when it is paused; null: it is not, or that is not known yet. */
  readonly waitingSince: string | null;
  readonly error: string | null;
}

/** @param waitingSince of a run that is paused, where it is known: the history does not tell */
export function rowOf(record: HistoryRecord, waitingSince: string | null = null): RunRow {
  const { usage, error } = record;
  return {
    id: record.id,
    topic: clipped(record.input_topic),
    status: record.status,
    isGodMode: record.execution_mode === 'god-mode',
    blueprintId: record.blueprint_id,
    actor: record.actor,
    score: record.critic_score,
    iterations: record.iteration_count,
    inputTokens: usage?.input_tokens ?? null,
    outputTokens: usage?.output_tokens ?? null,
    createdAt: record.created_at,
    durationMs: record.duration_ms,
    waitingSince: record.status === 'paused' ? waitingSince : null,
    error: error === null ? null : clipped(error),
  };
}

/** Types of events that change what a row shows. What they do not tell is read again. */
export const ROW_EVENTS = [
  'RunRequested',
  'RunStarted',
  'RunResumed',
  'NodeStarted',
  'RunPaused',
  'RunCompleted',
  'RunFailed',
] as const satisfies readonly FeedEvent['type'][];

/** The row after an event; an end is the end, though an event of before may be told after it was read. */
export function rowAfter(row: RunRow, event: FeedEvent): RunRow {
  if (isOver(row)) return row;
  switch (event.type) {
    case 'RunStarted':
    case 'RunResumed':
      return { ...row, status: 'running', waitingSince: null };
    case 'NodeStarted': {
      const { iteration } = event.data;
      return { ...row, status: 'running', waitingSince: null, iterations: iteration > 0 ? iteration : row.iterations };
    }
    case 'RunPaused': {
      const { criticScore, iteration } = event.data;
      const shown = { score: criticScore, iterations: iteration > 0 ? iteration : row.iterations };
      return { ...row, ...shown, status: 'paused', waitingSince: event.at };
    }
    case 'RunCompleted': {
      const { criticScore, iterationCount } = event.data;
      return { ...ended(row, event.at), status: 'completed', score: criticScore, iterations: iterationCount };
    }
    case 'RunFailed':
      return { ...ended(row, event.at), status: 'failed', error: clipped(event.data.error) };
    default:
      return row;
  }
}

/** Whether nothing of it changes any more. */
export function isOver({ status }: Pick<RunRow, 'status'>): boolean {
  return status === 'completed' || status === 'failed';
}

function ended(row: RunRow, at: string): RunRow {
  const durationMs = row.createdAt === null ? null : Math.max(0, Date.parse(at) - Date.parse(row.createdAt));
  return { ...row, durationMs, waitingSince: null };
}

function clipped(text: string): string {
  return text.length > TEXT_CHARS ? `${text.slice(0, TEXT_CHARS).toWellFormed()}…` : text;
}
