/** A row of the list of runs, and how events of the feed change it. */
import type { FeedEvent } from '../../../client/feed.js';
import type { ExcerptPart, HistoryRecord, RunUsage } from '../../../generated/schemas.js';
import { BUDGET_ENDS, REJECTED } from '../../../run/budget/end.js';
import { costText, unpricedModels } from '../../../run/cost-text.js';
import { shortCount } from '../../record/counts.js';
import { withLabels } from '../../record/page-words.js';
import { titledTopic } from '../../../run/titled-topic.js';

/** Longest text in a row, in characters: a list may have 100,000 runs. */
const TEXT_CHARS = 240;
/** Most characters before the first found word, so that a narrow row shows the word. */
const LEAD_CHARS = 24;

export interface RunRow {
  readonly id: string;
  readonly topic: string;
  readonly status: HistoryRecord['status'];
  readonly isGodMode: boolean;
  /** Or null for the built-in council. */
  readonly blueprintId: string | null;
  readonly actor: string | null;
  readonly score: number | null;
  readonly iterations: number | null;
  /** Or null if no call reported token usage. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** US dollars, or null if no call has a known cost. */
  readonly costUsd: number | null;
  /** Whether its cost is unknown because no model that it called has a price. */
  readonly isUnpriced: boolean;
  /** Calls to models so far, or null if the count is unknown. */
  readonly calls: number | null;
  readonly createdAt: string | null;
  /** Or null while the run has not ended. */
  readonly durationMs: number | null;
  /** Start of the pause, or null if the run is not paused or the start is not loaded. */
  readonly waitingSince: string | null;
  readonly error: string | null;
  /** Whether it tries a council that is not saved. */
  readonly isTrial: boolean;
  /** In a search, the text around the first found word. */
  readonly excerpt: readonly ExcerptPart[] | null;
}

/** @param waitingSince start of the pause, which the record does not contain */
export function rowOf(record: HistoryRecord, waitingSince: string | null = null): RunRow {
  const { usage, error } = record;
  return {
    id: record.id,
    topic: clipped(titledTopic(record)),
    status: record.status,
    isGodMode: record.execution_mode === 'god-mode',
    blueprintId: record.blueprint_id,
    actor: record.actor,
    score: record.critic_score,
    iterations: record.iteration_count,
    ...usedIn(usage),
    createdAt: record.created_at,
    durationMs: record.duration_ms,
    waitingSince: record.status === 'paused' ? waitingSince : null,
    isTrial: record.trial,
    excerpt: excerptOf(record.excerpts?.at(-1)?.parts ?? null),
    error: error === null ? null : errorText(error, record.execution_mode === 'god-mode'),
  };
}

/** Types of events that change a row. */
export const ROW_EVENTS = [
  'RunRequested',
  'RunStarted',
  'RunResumed',
  'NodeStarted',
  'RunPaused',
  'RunCompleted',
  'RunFailed',
] as const satisfies readonly FeedEvent['type'][];

/** The row after an event. A finished run does not change: an earlier event may arrive late. */
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
      return { ...ended(row, event.at), status: 'failed', error: errorText(event.data.error, row.isGodMode) };
    default:
      return row;
  }
}

/** The tokens and the cost, as one text or two. A run that has not ended may report them later. */
export function usageTexts(row: RunRow): readonly [string, string?] {
  const { inputTokens, outputTokens, costUsd, calls } = row;
  const hasTokens = inputTokens !== null || outputTokens !== null;
  const cost = row.isUnpriced ? 'no price' : costText(costUsd);
  if (hasTokens) return [`${countText(inputTokens)} in ${countText(outputTokens)} out`, cost];
  if (costUsd !== null) return [costText(costUsd)];
  if (!isOver(row)) return ['–'];
  return [calls === 0 ? 'no calls' : 'not reported'];
}

function usedIn(
  usage: RunUsage | null,
): Pick<RunRow, 'inputTokens' | 'outputTokens' | 'costUsd' | 'isUnpriced' | 'calls'> {
  if (usage === null) return { inputTokens: null, outputTokens: null, costUsd: null, isUnpriced: false, calls: null };
  const models = usage.by_model.map((each) => ({ model: each.model, ...amountsOf(each) }));
  const isUnpriced = usage.cost_usd === null && unpricedModels(models).length > 0;
  return { ...amountsOf(usage), isUnpriced, calls: usage.calls };
}

type Amounts = Pick<RunUsage, 'input_tokens' | 'output_tokens' | 'cost_usd'>;

function amountsOf({ input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }: Amounts) {
  return { inputTokens, outputTokens, costUsd };
}

function countText(count: number | null): string {
  return count === null ? '?' : shortCount(count);
}

/** Whether the run has ended. */
export function isOver({ status }: Pick<RunRow, 'status'>): boolean {
  return status === 'completed' || status === 'failed';
}

function ended(row: RunRow, at: string): RunRow {
  const durationMs = row.createdAt === null ? null : Math.max(0, Date.parse(at) - Date.parse(row.createdAt));
  return { ...row, durationMs, waitingSince: null };
}

/** The error of a run; without God Mode only a pause for the budget can be rejected. */
function errorText(error: string, isGodMode: boolean): string {
  return error === REJECTED && !isGodMode ? BUDGET_ENDS.rejected : clipped(withLabels(error, { node: (id) => id }));
}

/** Without Markdown, beginning with a word shortly before the first found one. */
function excerptOf(parts: readonly ExcerptPart[] | null): readonly ExcerptPart[] | null {
  if (parts === null) return null;
  return parts.map((part, at) => {
    if (part.found) return part;
    const text = part.text.replace(/(^|\s)(?:#{1,6}|[-*+>])(?=\s)|[*`]+/g, '$1').replace(/\s+/g, ' ');
    return { ...part, text: at === 0 ? lead(text) : text };
  });
}

function lead(text: string): string {
  const words = text.trimStart();
  if (words.length <= LEAD_CHARS) return words;
  const end = words.slice(-LEAD_CHARS);
  return `…${end.slice(end.indexOf(' ') + 1)}`;
}

function clipped(text: string): string {
  return text.length > TEXT_CHARS ? `${text.slice(0, TEXT_CHARS).toWellFormed()}…` : text;
}
