/**
 * `council salvage --to DIR`: copies every stream of a corrupt log whose hash chain is intact into a new log, and reports
 * each other stream with its first fault. The corrupt file stays as it is.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFilesPrivate } from '../../app/data-directory.js';
import { newEventOf } from '../../eventsourcing/copy-log.js';
import { openEmbeddedLog } from '../../eventlog/embedded/log.js';
import { knownHead } from '../../eventlog/embedded/head-file.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import type { RecordedEvent } from '../../eventlog/port.js';
import { LEDGER_STREAM, leafOf } from '../../ledger/events.js';
import { nodeSystem } from '../../system/system.js';
import { folderOfLog, openFolderLog } from '../records/folder-log.js';
import { ledgerDifferences } from '../records/ledger-check.js';
import { StreamChains } from '../records/stream-chains.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { HELP, execute, printLines } from './command.js';
import { ArgumentInvalid, EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council salvage --to DIR

Copies every intact record of the log in DATA_DIR into a new log in DIR, and reports each record that it omits on a line.
The service must be stopped; its log stays as it is.

  --to DIR  the folder of the new log, which must not hold a log yet
  --help    show this text

Exit code: 0 everything is copied, 1 a record is omitted, 2 wrong usage or setting, 5 DATA_DIR is in use or unreadable.`;

const OPTIONS = { ...HELP, to: { type: 'string' } } as const;

/** Concurrent appends. */
const MAX_APPENDS = 500;

export function salvage(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, { print }) => {
    if (positionals.length > 0) throw new UsageFault('Too many words');
    const { to: folder } = values;
    if (folder === undefined) throw new UsageFault('--to is missing: the folder of the new log');
    const from = folderOfLog(here.env);
    const target = join(resolve(folder), 'log.sqlite');
    if (existsSync(target)) {
      throw new ArgumentInvalid({ subject: `folder "${folder}"`, reason: 'it already holds a log' });
    }
    const log = openFolderLog(from);
    try {
      const last = Math.max(log.salvage.last(), knownHead(join(from, 'log.sqlite'))?.position ?? 0);
      return await salvageLog(log, { target, last, say: printLines(print) });
    } finally {
      log.close();
    }
  });
}

interface SalvageOptions {
  /** The file of the new log. */
  readonly target: string;
  /** The highest position that an event can have. */
  readonly last: number;
  readonly say: (line: string) => Promise<void>;
}

async function salvageLog(log: ReadOnlyLog, { target, last, say }: SalvageOptions): Promise<number> {
  const chains = new StreamChains(log.salvage, { last, sha256: nodeSystem().sha256 });
  const unreadable = chains.unreadable.length;
  const ledgerFault = chains.faults.get(LEDGER_STREAM);
  chains.faults.delete(LEDGER_STREAM);
  makeFilesPrivate();
  mkdirSync(join(target, '..'), { recursive: true });
  const { events, differences } = await copied(log, { last, chains, target, isLedgerWhole: ledgerFault === undefined });
  log.assertUnchanged();
  for (const [stream, { revision, reason }] of chains.faults) {
    await say(`omitted: ${namedAs(stream)}: event ${revision}: ${reason}`);
  }
  if (ledgerFault !== undefined)
    await say(
      `renumbered: the ledger lacks leaf ${ledgerFault.revision}: ${ledgerFault.reason}. The next start adds the missing leaves ` +
        'of runs; checkpoints of a larger size, and proofs by them, do not fit the new log',
    );
  if (unreadable > 0)
    await say(`unreadable: ${countOf(unreadable, 'event')}; the records are unknown and may be missing`);
  for (const { what } of differences) await say(`ledger: ${what}`);
  const intact = chains.size - chains.faults.size;
  await say(
    `Written to ${target}: ${countOf(events, 'event')} in ${countOf(intact, 'record')}; ${chains.faults.size} omitted`,
  );
  const isWhole = chains.faults.size + unreadable + differences.length === 0 && ledgerFault === undefined;
  return isWhole ? EXIT.done : EXIT.failed;
}

interface Copying {
  readonly last: number;
  readonly chains: StreamChains;
  readonly target: string;
  readonly isLedgerWhole: boolean;
}

/**
 * Copies the intact streams to a new log, in the order of the log, and bars the erased ones. Of a ledger that is not intact it
 * copies the leaves that it can read, because nothing else holds the erasures.
 *
 * @returns the number of events, and what a whole ledger differs in: read from the copy, because the index of the log may be
 *   corrupt
 */
async function copied({ salvage }: ReadOnlyLog, { last, chains, target, isLedgerWhole }: Copying) {
  let [events, leaves] = [0, 0];
  const copy = await openEmbeddedLog({ file: target });
  try {
    let appends: Promise<unknown>[] = [];
    for (const event of salvage.events(last)) {
      if ('reason' in event || chains.faults.has(event.stream) || chains.erased.has(event.stream)) continue;
      let { revision } = event;
      if (event.stream === LEDGER_STREAM) {
        if (!isLeaf(event)) continue;
        revision = leaves;
        leaves += 1;
      }
      // The log writes concurrent appends in the order of the calls.
      appends.push(copy.append(event.stream, [newEventOf(event)], revision === 0 ? 'none' : revision - 1));
      events += 1;
      if (appends.length < MAX_APPENDS) continue;
      await Promise.all(appends);
      appends = [];
    }
    await Promise.all(appends);
    if (chains.erased.size > 0) await copy.remove([...chains.erased]);
    return { events, differences: isLedgerWhole ? await ledgerDifferences(copy, chains, null) : [] };
  } finally {
    await copy.close();
  }
}

function isLeaf(event: RecordedEvent): boolean {
  try {
    leafOf(event);
    return true;
  } catch {
    return false;
  }
}

/** A stream's display name: its kind and its id. */
function namedAs(stream: string): string {
  return stream.replace('-', ' ');
}
