/** `council traces`: exports the traces of past runs to a collector. */
import { readConfig } from '../../config.js';
import { ConfigInvalid } from '../../errors.js';
import { timestampIn } from '../../http/timestamp.js';
import { RunCorrupt } from '../../run/errors.js';
import type { RunEvent } from '../../run/events.js';
import { assertRunEvent, orCorrupt } from '../../run/stream.js';
import { nodeSystem } from '../../system/system.js';
import type { Send } from '../../telemetry/collector.js';
import { collector } from '../../telemetry/collector.js';
import { traceIn } from '../../telemetry/spans.js';
import type { RunRecords } from '../records/record.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess, Output } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';
import { PLACES, RECORD_OPTIONS, onRecord } from './record-command.js';

const USAGE = `Usage: council traces --from TIME [--to TIME] [--url URL]

Exports the runs that started in a time and have ended, each as one trace, to the collector of
OTEL_EXPORTER_OTLP_ENDPOINT. Their ids are those of an earlier export.

  --from TIME  earliest start: a day such as 2026-11-01, or a time in the form of RFC 3339
  --to TIME    latest start; a day is included. Default: now
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, from: { type: 'string' }, to: { type: 'string' } } as const;

export function traces(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    if (positionals.length > 0) throw new UsageFault(`Too many words: ${positionals.length}, none accepted`);
    const started = {
      from: timeIn('from', values.from, 'first'),
      to: timeIn('to', values.to ?? nodeSystem().now(), 'last'),
    };
    const send = collector(settingsOf(here.env));
    return await deps.reading(async (records) => {
      const counts = { exported: 0, unfinished: 0, refused: 0, later: 0 };
      for await (const run of records.list(started)) {
        counts[await exportOne(run, { records, send, signal: here.signal, notify: deps.notify })] += 1;
        if (here.signal.aborted || counts.later > 0) break;
      }
      const { exported, unfinished, refused, later } = counts;
      await deps.print(
        `Exported ${countOf(exported, 'run')}; not ended: ${unfinished}, not exported: ${refused + later}\n`,
      );
      return refused + later === 0 ? EXIT.done : EXIT.failed;
    });
  });
}

/** @throws {UsageFault} */
function timeIn(name: string, text: string | undefined, ofDay: 'first' | 'last'): string {
  const time = text === undefined ? null : timestampIn(text, ofDay);
  if (time !== null) return time;
  throw new UsageFault(text === undefined ? `--${name} is missing` : `--${name} takes a day or a time; not "${text}"`);
}

/** @throws {ConfigInvalid} */
function settingsOf(env: NodeJS.ProcessEnv) {
  const { traces: settings } = readConfig(env);
  if (settings !== null) return settings;
  const accepted = 'the address of a collector, such as http://127.0.0.1:4318';
  throw new ConfigInvalid({ variable: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: '', accepted });
}

interface ExportDeps extends Pick<Output, 'notify'> {
  readonly records: RunRecords;
  readonly send: Send;
  readonly signal: AbortSignal;
}

async function exportOne(run: string, { records, send, signal, notify }: ExportDeps) {
  try {
    const spans = await traceIn(run, eventsOf(run, records), nodeSystem().sha256);
    if (spans === null) return 'unfinished';
    const sent = await send(spans, signal);
    if (sent.outcome === 'exported') return 'exported';
    const rest = sent.outcome === 'later' ? '; stopping here, because the collector is away or busy' : '';
    notify(`Cannot export run ${run}: ${sent.reason}${rest}`);
    return sent.outcome;
  } catch (error) {
    if (!(error instanceof RunCorrupt)) throw error;
    notify(error.message);
  }
  return 'refused';
}

/** @throws {RunCorrupt} */
async function* eventsOf(run: string, records: RunRecords): AsyncGenerator<RunEvent> {
  for await (const event of records.events(run)) {
    yield orCorrupt({ runId: run, seq: event.seq }, () => {
      assertRunEvent(event);
      return event;
    });
  }
}
