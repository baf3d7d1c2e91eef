/** `council overview`: shows figures of many runs at a service. */
import type { Overview, OverviewDuration } from '../../generated/schemas.js';
import { inOneLine } from '../terminal/printer.js';
import { countOf } from '../terminal/table.js';
import { usageText, usedIn } from '../terminal/usage-text.js';
import { AT_SERVICE, SERVICE_OPTIONS, serviceRead } from './service-read.js';

const USAGE = `Usage: council overview --url URL [--from DAY] [--to DAY] [--json]

Shows the runs that started on some days and have ended: their outcomes, durations without waits for humans, scores, tokens
and cost; and the runs that wait for a human now. Runs that were tried in the editor do not count.

  --from DAY   the first day in UTC, as in 2026-11-01; default: 29 days before the last
  --to DAY     the last day, which is included; default: today
${AT_SERVICE}`;

export const overview = serviceRead({
  usage: USAGE,
  options: { ...SERVICE_OPTIONS, from: { type: 'string' }, to: { type: 'string' } },
  read: (council, { values: { from, to }, signal }) => council.overview({ from, to, signal }),
  textOf,
});

function textOf({ from, to, outcomes, duration, days, councils, models, waiting }: Overview): string {
  const { completed, failed, rejected, cancelled } = outcomes;
  const lines = [
    `${from} to ${to}: ${completed} completed, ${failed} failed, ${rejected} rejected, ${cancelled} cancelled`,
    ...(completed === 0 ? [] : [`Duration: ${durationText(duration)}`]),
    `Waiting now: ${waiting.runs}${waiting.oldest_since === null ? '' : `, the first since ${waiting.oldest_since}`}`,
    ...days.map(({ day, outcomes: of, duration: own }) => {
      const others = of.failed + of.rejected + of.cancelled;
      return `  ${day}  ${of.completed} completed, ${others} not${of.completed === 0 ? '' : `, ${durationText(own)}`}`;
    }),
    ...councils.map(({ blueprint_id: id, runs, score, usage }) => {
      const name = id === null ? 'built-in council' : id;
      return `  ${inOneLine(name)}: ${countOf(runs, 'run')}, score ${score ?? 'none'}, ${usageText(usedIn(usage))}`;
    }),
    ...models.map(({ model, usage }) => `  ${inOneLine(model)}: ${usageText(usedIn(usage))}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function durationText({ median_ms: median, p95_ms: p95 }: OverviewDuration): string {
  return `median ${secondsText(median)}, p95 ${secondsText(p95)}`;
}

function secondsText(ms: number | null): string {
  return `${((ms ?? 0) / 1_000).toFixed(1)} s`;
}
