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
import { LEDGER_STREAM } from '../../ledger/events.js';
import { nodeSystem } from '../../system/system.js';
import { folderOfLog, openFolderLog } from '../records/folder-log.js';
import { ErasedStreams } from '../records/erased-streams.js';
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
  const { chains, erased, unreadable } = chainsOf(log, last);
  const ledgerFault = chains.faults.get(LEDGER_STREAM) ?? null;
  chains.faults.delete(LEDGER_STREAM);
  makeFilesPrivate();
  mkdirSync(join(target, '..'), { recursive: true });
  const { events, leaves } = await copied(log, { last, chains, erased, cutAt: ledgerFault?.revision ?? null, target });
  log.assertUnchanged();
  for (const [stream, { revision, reason }] of chains.faults) {
    await say(`omitted: ${namedAs(stream)}: event ${revision}: ${reason}`);
  }
  if (ledgerFault !== null)
    await say(
      `cut: the ledger ends before leaf ${leaves}: ${ledgerFault.reason}. The next start adds the later runs again; ` +
        'checkpoints of a larger size, and proofs by them, do not fit the new log',
    );
  if (unreadable > 0)
    await say(`unreadable: ${countOf(unreadable, 'event')}; the records are unknown and may be missing`);
  const lost = erased.lost(chains);
  for (const stream of lost) await say(`missing: ${namedAs(stream)}: its events are gone, and no erasure is recorded`);
  const intact = chains.size - chains.faults.size;
  await say(
    `Written to ${target}: ${countOf(events, 'event')} in ${countOf(intact, 'record')}; ${chains.faults.size} omitted`,
  );
  return chains.faults.size + unreadable + lost.length === 0 && ledgerFault === null ? EXIT.done : EXIT.failed;
}

function chainsOf({ salvage }: ReadOnlyLog, last: number) {
  const chains = new StreamChains(nodeSystem().sha256);
  const erased = new ErasedStreams();
  let unreadable = 0;
  for (const event of salvage.events(last)) {
    if ('reason' in event) unreadable += 1;
    else {
      chains.take(event);
      erased.take(event);
    }
  }
  for (const [stream, revision] of salvage.ends()) chains.expectEnd(stream, revision);
  return { chains, erased, unreadable };
}

interface Copying {
  readonly last: number;
  readonly chains: StreamChains;
  readonly erased: ErasedStreams;
  /** Number of the first leaf of the ledger that is not intact, or null if all are. */
  readonly cutAt: number | null;
  readonly target: string;
}

/**
 * Copies the intact streams to a new log, in the order of the log, and bars the erased ones. Of a ledger that is not intact it
 * copies the leaves before the fault, whose tree is that of the earlier checkpoints. Of those after it, it appends the
 * erasures, because nothing else holds them; a service adds the runs again.
 *
 * @returns how many events it has copied, and how many leaves from before a fault of the ledger
 */
async function copied({ salvage }: ReadOnlyLog, { last, chains, erased, cutAt, target }: Copying) {
  let [events, leaves, nextLeaf] = [0, 0, 0];
  const copy = await openEmbeddedLog({ file: target });
  try {
    let appends: Promise<unknown>[] = [];
    for (const event of salvage.events(last)) {
      if ('reason' in event || chains.faults.has(event.stream) || erased.names.has(event.stream)) continue;
      let { revision } = event;
      if (event.stream === LEDGER_STREAM) {
        if (cutAt === null || revision < cutAt) leaves += 1;
        else if (!erased.leaves.has(revision)) continue;
        revision = nextLeaf;
        nextLeaf += 1;
      }
      // The log writes concurrent appends in the order of the calls.
      appends.push(copy.append(event.stream, [newEventOf(event)], revision === 0 ? 'none' : revision - 1));
      events += 1;
      if (appends.length < MAX_APPENDS) continue;
      await Promise.all(appends);
      appends = [];
    }
    await Promise.all(appends);
    if (erased.names.size > 0) await copy.remove([...erased.names]);
  } finally {
    await copy.close();
  }
  return { events, leaves };
}

/** A stream's display name: its kind and its id. */
function namedAs(stream: string): string {
  return stream.replace('-', ' ');
}
