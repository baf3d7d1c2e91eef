/** `council runs`: lists the runs of a service that pass filters, or exports them. */
import type { CouncilClient, ExportOptions, RunFilters } from '../../client/client.js';
import type { HistoryRecord } from '../../generated/schemas.js';
import { dollarText } from '../../run/cost-text.js';
import { titledTopic } from '../../run/titled-topic.js';
import { nodeSystem } from '../../system/system.js';
import { writeAtomically } from '../records/files.js';
import { inOneLine, printable, printableJson } from '../terminal/printer.js';
import { tableText } from '../terminal/table.js';
import type { CommandProcess, Words } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';
import type { RecordDeps } from './record-command.js';
import { onRecord } from './record-command.js';
import { SERVICE_OPTIONS, clientAt } from './service-read.js';

const USAGE = `Usage: council runs --url URL [filters] [--sort ORDER] [--limit N]
       council runs --url URL [filters] [--sort ORDER] --json|--csv [--out FILE]

Lists the runs of a service that pass all filters, the newest first. With --json or --csv, exports all of them.

  --status S            pending, running, paused, completed or failed
  --outcome O           completed, failed, rejected or cancelled; the last three have the status failed
  --blueprint ID        runs of a saved council; --built-in for those of the built-in one
  --trial yes|no        yes: only test runs of the editor; no: only others
  --actor NAME          runs that this key has started
  --parent RUN          forks of a run
  --parent-run RUN      runs that the councils of a run have started
  --children            also runs that councils have started; they are left out otherwise
  --from T, --to T      first and last start: a day in UTC, or a time as in 2026-11-27T10:00:00Z; both are included
  --q WORDS             runs whose topic and final draft have all of these words
  --min-score N, --max-score N
                        lowest and highest score; both are included
  --sort ORDER          created_at, score, cost, duration or iterations, with - in front for descending order; or waiting
  --limit N             list at most N runs; default: 50
  --json                print each run as one line of JSON
  --csv                 print a table for spreadsheets
  --out FILE            write to FILE instead of standard output; FILE is complete or unchanged
  --url URL             the service, for example http://127.0.0.1:8000
  --help                show this text

Exit code: 0 done, 1 failed, 2 wrong usage or a refusal, 3 no service at URL, 130 after Ctrl-C.`;

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const OPTIONS = {
  ...SERVICE_OPTIONS,
  csv: FLAG,
  out: TEXT,
  limit: TEXT,
  sort: TEXT,
  status: TEXT,
  outcome: TEXT,
  blueprint: TEXT,
  'built-in': FLAG,
  trial: TEXT,
  actor: TEXT,
  parent: TEXT,
  'parent-run': TEXT,
  children: FLAG,
  from: TEXT,
  to: TEXT,
  q: TEXT,
  'min-score': TEXT,
  'max-score': TEXT,
} as const;

type Values = Words<typeof OPTIONS>['values'];

/** Number of runs to list without --limit. */
const LISTED = 50;
/** Number of runs that one request lists. */
const PAGE = 200;

export function runs(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    if (positionals.length > 0) throw new UsageFault('Too many words: none accepted');
    const format = formatIn(values);
    const most = limitIn(values);
    const filters = { ...filtersIn(values), signal: here.signal };
    const council = await clientAt(deps.url, here);
    if (format === null) await list(council, filters, { most, deps });
    else await exportRuns(council, { ...filters, format }, { out: values.out, deps, signal: here.signal });
    return EXIT.done;
  });
}

/** The format of the export, or null if the command lists runs. @throws {UsageFault} */
function formatIn({ json = false, csv = false, out, limit }: Values): 'ndjson' | 'csv' | null {
  if (json && csv) throw new UsageFault('--json and --csv exclude each other');
  const format = json ? 'ndjson' : csv ? 'csv' : null;
  if (format === null && out !== undefined) throw new UsageFault('--out needs --json or --csv');
  if (format !== null && limit !== undefined) throw new UsageFault('--limit is for the list: an export has all runs');
  return format;
}

/** @throws {UsageFault} */
function limitIn({ limit = String(LISTED) }: Values): number {
  if (/^[1-9]\d{0,8}$/.test(limit)) return Number(limit);
  throw new UsageFault(`--limit takes a number from 1; not "${limit}"`);
}

/** The service checks the values. @throws {UsageFault} */
function filtersIn({ blueprint, actor, parent, from, to, q, trial, ...values }: Values): RunFilters {
  if (trial !== undefined && trial !== 'yes' && trial !== 'no')
    throw new UsageFault(`--trial takes yes or no; not "${trial}"`);
  const numberIn = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
  return {
    blueprint,
    actor,
    parent,
    parentRun: values['parent-run'],
    children: values.children,
    from,
    to,
    q,
    status: values.status as RunFilters['status'],
    outcome: values.outcome as RunFilters['outcome'],
    sort: values.sort as RunFilters['sort'],
    builtIn: values['built-in'] === true ? true : undefined,
    trial: trial === undefined ? undefined : trial === 'yes',
    minScore: numberIn(values['min-score']),
    maxScore: numberIn(values['max-score']),
  };
}

const TITLES = ['RUN', 'CREATED', 'STATUS', 'SCORE', 'COST', 'COUNCIL', 'TOPIC'];

async function list(
  { runs: history }: CouncilClient,
  filters: RunFilters,
  { most, deps: { print, notify, columns } }: { readonly most: number; readonly deps: RecordDeps },
): Promise<void> {
  const rows: (readonly string[])[] = [];
  let hasMore = false;
  for await (const run of history.list({ ...filters, limit: Math.min(most + 1, PAGE) })) {
    hasMore = rows.length === most;
    if (hasMore) break;
    rows.push(rowOf(run));
  }
  if (rows.length === 0) return notify('No run passes the filters');
  const lines = tableText([TITLES, ...rows]).split('\n');
  await print(lines.map((line) => (columns === null ? line : [...line].slice(0, columns).join(''))).join('\n'));
  if (hasMore) notify('There are more runs: --limit N lists more, --json and --csv export all');
}

function rowOf({ id, status, trial, usage, ...run }: HistoryRecord): readonly string[] {
  const { created_at: createdAt, critic_score: score, blueprint_id: blueprint } = run;
  const cost = usage?.cost_usd ?? null;
  const council = trial ? 'trial' : (blueprint ?? 'built-in');
  const cells = [id, createdAt ?? '-', status, String(score ?? '-'), cost === null ? '?' : dollarText(cost), council];
  return [...cells, titledTopic(run)].map(inOneLine);
}

async function exportRuns(
  { runs: history }: CouncilClient,
  options: ExportOptions,
  { out, deps, signal }: { readonly out: string | undefined; readonly deps: RecordDeps; readonly signal: AbortSignal },
): Promise<void> {
  const chunks = history.exportChunks(options);
  if (out !== undefined) return await writeAtomically(out, chunks, { uuid: nodeSystem().uuid, signal });
  const { print, isTerminal } = deps;
  const decoder = new TextDecoder();
  // The lines of a table end with a carriage return, which a terminal does not need.
  const shown = (text: string): string =>
    options.format === 'csv' ? printable(text.replaceAll('\r', '')) : printableJson(text);
  for await (const chunk of chunks) await print(isTerminal ? shown(decoder.decode(chunk, { stream: true })) : chunk);
}
