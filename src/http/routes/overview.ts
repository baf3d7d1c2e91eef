/** Figures of many runs. */
import { dollars } from '../../api/serializers/runs.js';
import { brokenRules } from '../../api/problems.js';
import type {
  Estimate,
  EstimateFigure,
  FieldError,
  Overview,
  OverviewDuration,
  OverviewOutcomes,
  OverviewQuery,
  OverviewUsage,
} from '../../generated/schemas.js';
import type { DurationRow, OverviewRows, ScoreRow, UsageRow } from '../../projections/overview.js';
import { durationAt } from '../../projections/overview.js';
import type { RunSummary } from '../../projections/run-summary.js';
import { workedMsOf } from '../../projections/run-summary.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { NO_TIMESTAMP, timestampIn } from '../timestamp.js';

const DAY_MS = 86_400_000;
/** Most days of an overview. */
const MAX_DAYS = 366;
const DEFAULT_DAYS = 30;
/** The ends of the ages of waits, in milliseconds. */
const AGES_MS = [3_600_000, DAY_MS, 7 * DAY_MS];

/** GET /api/overview and GET /api/estimate. */
export function overviewRoutes(http: HttpContext): readonly Route[] {
  const query = queryOf(http.schemas, 'overview-query.json');
  return [
    estimateRoute(http),
    {
      method: 'GET',
      path: '/api/overview',
      access: 'read',
      name: 'getOverview',
      summary: 'Returns figures of many runs: outcomes, durations, scores, tokens and cost, and waits for humans',
      description: 'Runs count on the day of their start, in UTC, once they have ended.',
      tag: 'history',
      query,
      success: { status: 200, description: 'The figures', schema: 'overview.json' },
      async handle(ctx) {
        const now = http.system.now();
        const days = daysOf(query.read(ctx), now);
        const waitingSince = AGES_MS.map((age) => new Date(Date.parse(now) - age).toISOString());
        const rows = await http.withinDeadline(http.queries.overview({ days, waitingSince }));
        return { status: 200, body: overview(days, rows) };
      },
    },
  ];
}

/** The first and the last day. @throws {RequestRefused} 422 */
function daysOf({ from, to }: OverviewQuery, now: string): readonly [string, string] {
  const errors: FieldError[] = [];
  const dayIn = (name: 'from' | 'to', text: string): string => {
    const time = timestampIn(text, 'first');
    if (time === null) errors.push({ loc: ['query', name], ...NO_TIMESTAMP });
    return (time ?? now).slice(0, 10);
  };
  const last = dayIn('to', to ?? now);
  const first = from === undefined ? dayBefore(last, DEFAULT_DAYS - 1) : dayIn('from', from);
  if (errors.length > 0) throw brokenRules(errors);
  if (first > last || first < dayBefore(last, MAX_DAYS - 1)) {
    const msg = `Input should be a day up to ${MAX_DAYS - 1} days before "to"`;
    throw brokenRules([{ loc: ['query', 'from'], msg, type: 'range' }]);
  }
  return [first, last];
}

function dayBefore(day: string, days: number): string {
  return new Date(Math.max(0, Date.parse(day) - days * DAY_MS)).toISOString().slice(0, 10);
}

function overview([from, to]: readonly [string, string], rows: OverviewRows): Overview {
  const { outcomes, durations, byModel, byMonth, waiting } = rows;
  const [outcomesOf, durationsOf] = [byDay(outcomes), byDay(durations)];
  const days = [...new Set(outcomes.filter(({ runs }) => runs > 0).map(({ day }) => day))].sort();
  return {
    from,
    to,
    outcomes: outcomesIn(outcomes),
    duration: duration(durations),
    days: days.map((day) => ({
      day,
      outcomes: outcomesIn(outcomesOf.get(day) ?? []),
      duration: duration(durationsOf.get(day) ?? []),
    })),
    councils: rows.councils.map((council) => councilIn(council, rows)),
    models: byModel.filter(({ calls }) => calls > 0).map((row) => ({ model: row.name, usage: usage(row) })),
    months: byMonth.filter(({ calls }) => calls > 0).map((row) => ({ month: row.name, usage: usage(row) })),
    waiting: { runs: waiting.runs, oldest_since: waiting.first, ages: agesIn(waiting) },
  };
}

function byDay<Row extends { readonly day: string }>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const days = new Map<string, Row[]>();
  for (const row of rows) {
    const others = days.get(row.day);
    if (others === undefined) days.set(row.day, [row]);
    else others.push(row);
  }
  return days;
}

function outcomesIn(rows: OverviewRows['outcomes']): OverviewOutcomes {
  const counts: OverviewOutcomes = { completed: 0, failed: 0, rejected: 0, cancelled: 0 };
  for (const { outcome, runs } of rows) counts[outcome] += runs;
  return counts;
}

function duration(rows: readonly DurationRow[]): OverviewDuration {
  return { median_ms: durationAt(rows, 0.5), p95_ms: durationAt(rows, 0.95) };
}

function councilIn(council: string, { scores, byCouncil }: OverviewRows): Overview['councils'][number] {
  const own = scores.filter((each) => each.council === council && each.runs > 0);
  const sum = (of: (row: ScoreRow) => number): number => own.reduce((total, row) => total + of(row), 0);
  const used = byCouncil.find(({ name }) => name === council) ?? NOTHING_USED;
  return {
    blueprint_id: council === '' ? null : council,
    runs: sum(({ runs }) => runs),
    score: meanScore({ scored: sum(({ scored }) => scored), score: sum(({ score }) => score) }),
    days: own.map((row) => ({ day: row.day, runs: row.runs, score: meanScore(row) })),
    usage: usage(used),
  };
}

const NOTHING_USED: UsageRow = { name: '', calls: 0, unmetered: 0, unpriced: 0, input: 0, output: 0, costUsd: 0 };

/** Rounded to a hundredth, or null without a score. */
function meanScore({ scored, score }: Pick<ScoreRow, 'scored' | 'score'>): number | null {
  return scored === 0 ? null : Math.round((100 * score) / scored) / 100;
}

function usage({ calls, unmetered, unpriced, input, output, costUsd }: UsageRow): OverviewUsage {
  const isMetered = unmetered < calls;
  return {
    input_tokens: isMetered ? input : null,
    output_tokens: isMetered ? output : null,
    // The views sum binary fractions.
    cost_usd: unpriced < calls ? Math.round(costUsd * 1e9) / 1e9 : null,
    calls,
    unmetered_calls: unmetered,
    unpriced_calls: unpriced,
  };
}

function agesIn({ runs, before }: OverviewRows['waiting']): Overview['waiting']['ages'] {
  const longerThan = [runs, ...before, 0];
  return [...AGES_MS, null].map((below, at) => ({
    below_ms: below,
    runs: (longerThan[at] ?? 0) - (longerThan[at + 1] ?? 0),
  }));
}

/** The runs that an estimate reads. */
const ESTIMATED_RUNS = 100;

function estimateRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'estimate-query.json');
  return {
    method: 'GET',
    path: '/api/estimate',
    access: 'read',
    name: 'getEstimate',
    summary: 'Returns what the last completed runs of a council have used, to estimate the next one',
    tag: 'history',
    query,
    success: { status: 200, description: 'The figures; all null without such a run', schema: 'estimate.json' },
    async handle(ctx) {
      const { blueprint_id: blueprintId } = query.read(ctx);
      const council = blueprintId === undefined ? { isBuiltIn: true as const } : { blueprintId };
      const filter = { ...council, status: 'completed' as const };
      const runs = await http.withinDeadline(http.queries.list({ filter, limit: ESTIMATED_RUNS, offset: 0 }));
      // A fork has used less than a whole run.
      const unforked = runs.filter(({ parent }) => parent === null);
      return { status: 200, body: estimateOf(blueprintId ?? null, unforked) };
    },
  };
}

function estimateOf(blueprintId: string | null, runs: readonly RunSummary[]): Estimate {
  const figure = (of: (run: RunSummary) => number | null): EstimateFigure => {
    const values = runs.flatMap((run) => of(run) ?? []).sort((one, other) => one - other);
    const at = (share: number): number | null => values[Math.max(1, Math.ceil(share * values.length)) - 1] ?? null;
    return { median: at(0.5), p95: at(0.95) };
  };
  return {
    blueprint_id: blueprintId,
    runs: runs.length,
    cost_usd: figure(({ usage }) => (usage?.pricedCalls === usage?.calls ? dollars(usage?.costUsd ?? null) : null)),
    tokens: figure(({ usage }) => (usage?.toldCalls === usage?.calls ? tokensIn(usage) : null)),
    duration_ms: figure(workedMsOf),
  };
}

function tokensIn(usage: RunSummary['usage']): number | null {
  const { inputTokens = null, outputTokens = null } = usage ?? {};
  return inputTokens === null || outputTokens === null ? null : inputTokens + outputTokens;
}
