/** `council events` and `council tail`: list the events of a run. */
import { exportLine } from '../../audit/export.js';
import type { RunRecords } from '../records/record.js';
import { isTerminal } from '../records/record.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import { fieldOf } from '../../system/untrusted.js';
import { eventLines } from '../terminal/event-line.js';
import type { CommandProcess } from './command.js';
import { EXIT } from './exit-codes.js';
import { exportTo } from './export.js';
import type { RecordDeps } from './record-command.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, jsonText, onRecord, runsIn } from './record-command.js';

const JSON_USAGE = '  --json       print each event as one line of JSON';

const EVENTS_USAGE = `Usage: council events RUN [--json] [--url URL]

Lists the events of a run, one line each.

${JSON_USAGE}
${PLACES}`;

const TAIL_USAGE = `Usage: council tail RUN [--json] [--url URL]

Lists the events of a run as the service records them, until the run ends. Continues after a restart of the service.
After the end of a run that a council has started come the runs below it, as a tree.

${JSON_USAGE}
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION } as const;

/** Characters of lines to collect before a write. */
const PAGE_CHARS = 64 * 1024;

export function events(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: EVENTS_USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    return await deps.reading((records) =>
      values.json === true ? exportTo(deps, records, run) : listEvents(records, run, deps),
    );
  });
}

async function listEvents(records: RunRecords, run: string, { style, columns, print }: RecordDeps): Promise<number> {
  const lineOf = eventLines(style, columns);
  let page = '';
  for await (const event of records.events(run)) {
    page += `${lineOf(event)}\n`;
    if (page.length < PAGE_CHARS) continue;
    await print(page);
    page = '';
  }
  await print(page);
  return EXIT.done;
}

export function tail(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: TAIL_USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const { style, columns, print, notify } = deps;
    const lineOf = eventLines(style, columns);
    const hasEnded = await deps.reading(async (records) => {
      let isLast = false;
      for await (const event of records.follow(run)) {
        isLast = isTerminal(event);
        await print(values.json === true ? jsonText(exportLine(event), deps) : `${lineOf(event)}\n`);
        if (values.json !== true) await print(await rowsBelow(records, event, deps));
      }
      return isLast;
    });
    if (!hasEnded && !here.signal.aborted) {
      notify('The run has not ended, and no service runs it here. Start the service to continue it');
    }
    return EXIT.done;
  });
}

/** After the end of a run that a council has started: the ends of the runs below it, deeper with each level. */
async function rowsBelow(
  records: RunRecords,
  { type, data }: ExportedEvent,
  deps: RecordDeps,
  depth = 1,
): Promise<string> {
  const child = type === 'ChildEnded' ? fieldOf(data, 'child') : null;
  if (typeof child !== 'string') return '';
  const lineOf = eventLines(deps.style, deps.columns, depth);
  let rows = '';
  for await (const event of records.events(child)) {
    const line = lineOf(event);
    if (event.type === 'ChildEnded') rows += `${line}\n${await rowsBelow(records, event, deps, depth + 1)}`;
  }
  return rows;
}
