/** `council estimate`: shows what the last runs of a council have used. */
import { dollarText } from '../../run/cost-text.js';
import type { Estimate, EstimateFigure } from '../../generated/schemas.js';
import { inOneLine } from '../terminal/printer.js';
import { countOf, tableText } from '../terminal/table.js';
import { AT_SERVICE, SERVICE_OPTIONS, serviceRead } from './service-read.js';

const USAGE = `Usage: council estimate [--blueprint ID] --url URL [--json]

Shows what the last completed runs of a council have used, at most 100 of them, to estimate the next one.

  --blueprint  id of the saved council; default: the built-in one
${AT_SERVICE}`;

export const estimate = serviceRead({
  usage: USAGE,
  options: { ...SERVICE_OPTIONS, blueprint: { type: 'string' } },
  read: (council, { values: { blueprint }, signal }) => council.runs.estimate({ blueprint, signal }),
  textOf,
});

function textOf({ blueprint_id: id, runs, cost_usd: cost, tokens, duration_ms: duration }: Estimate): string {
  const council = id === null ? 'built-in council' : inOneLine(id);
  if (runs === 0) return `${council}: no completed run to estimate from\n`;
  const rows = [
    ['', 'median', 'p95'],
    rowOf('cost', cost, dollarText),
    rowOf('tokens', tokens, String),
    rowOf('duration', duration, (ms) => `${(ms / 1_000).toFixed(1)} s`),
  ];
  return `${council}: ${countOf(runs, 'completed run')}\n${tableText(rows)}`;
}

function rowOf(name: string, { median, p95 }: EstimateFigure, textOf: (value: number) => string): readonly string[] {
  return [name, ...[median, p95].map((value) => (value === null ? 'not reported' : textOf(value)))];
}
