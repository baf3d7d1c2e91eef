/** `council overview`: shows figures of many runs at a service. */
import { readCouncilKey } from '../../config.js';
import { dollarText } from '../../run/cost-text.js';
import type { Overview, OverviewDuration, OverviewUsage } from '../../generated/schemas.js';
import { nodeSystem } from '../../system/system.js';
import { inOneLine } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { HELP, execute, serviceUrl } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council overview --url URL [--from DAY] [--to DAY] [--json]

Shows the runs that started on some days and have ended: their outcomes, durations without waits for humans, scores, tokens
and cost; and the runs that wait for a human now. Runs that were tried in the editor do not count.

  --url URL    the service, for example http://127.0.0.1:8000
  --from DAY   the first day in UTC, as in 2026-11-01; default: 29 days before the last
  --to DAY     the last day, which is included; default: today
  --json       print the figures as one JSON object
  --help       show this text

Exit code: 0 done, 1 failed, 2 wrong usage, 3 no service at URL, 130 after Ctrl-C.`;

const TEXT = { type: 'string' } as const;
const OPTIONS = { ...HELP, url: TEXT, from: TEXT, to: TEXT, json: { type: 'boolean' } } as const;

export function overview(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, { print }) => {
    const { url, from, to, json = false } = values;
    if (url === undefined) throw new UsageFault('--url is missing');
    if (positionals.length > 0) throw new UsageFault('Too many words: none accepted');
    const { serviceClient } = await import('../service-client.js');
    const { env, signal } = here;
    const council = serviceClient(serviceUrl(url), {
      key: readCouncilKey(env),
      system: nodeSystem(),
    });
    const found = await council.overview({ from, to, signal });
    await print(json ? `${JSON.stringify(found)}\n` : textOf(found));
    return EXIT.done;
  });
}

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
      return `  ${inOneLine(name)}: ${runs} runs, score ${score ?? 'none'}, ${usageText(usage)}`;
    }),
    ...models.map(({ model, usage }) => `  ${inOneLine(model)}: ${usageText(usage)}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function durationText({ median_ms: median, p95_ms: p95 }: OverviewDuration): string {
  return `median ${secondsText(median)}, p95 ${secondsText(p95)}`;
}

function secondsText(ms: number | null): string {
  return `${((ms ?? 0) / 1_000).toFixed(1)} s`;
}

function usageText({ input_tokens: input, output_tokens: output, cost_usd: cost }: OverviewUsage): string {
  const tokens = input === null ? 'tokens not reported' : `${input} tokens in, ${output ?? 0} out`;
  return `${tokens}, ${cost === null ? 'cost not reported' : dollarText(cost)}`;
}
