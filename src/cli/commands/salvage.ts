/**
 * `council salvage --to DIR`: copies every valid stream of a broken log, its hash chain verified, into a new log, and
 * reports each other stream with what is lost of it. The broken file is not changed.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { keepPrivate } from '../../app/data-directory.js';
import { newEventOf } from '../../eventsourcing/copy-log.js';
import { openEmbeddedLog } from '../../eventlog/embedded/log.js';
import { knownHead } from '../../eventlog/embedded/head-file.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { nodeSystem } from '../../system/system.js';
import { folderOfLog, openFolderLog } from '../records/folder-log.js';
import { StreamChains } from '../records/stream-chains.js';
import { UsageFault } from './command.js';
import type { CommandProcess } from './command.js';
import type { Say } from './exit-codes.js';
import { EXIT, exitOfLogCommand } from './exit-codes.js';

const USAGE = `Usage: council salvage --to DIR

Writes every whole record of the log in DATA_DIR into a new log in DIR; the service is stopped, and its log stays as it is.
Tells in a line each what was left behind. Exit code 0: nothing was, 1: something was.
`;

/** Concurrent appends. */
const AT_ONCE = 500;

export function salvage([, word, folder, ...rest]: readonly string[], here: CommandProcess): Promise<number> {
  return exitOfLogCommand(here, async (say) => {
    if (word === '--help' || word === '-h') {
      await say(USAGE.trimEnd());
      return EXIT.done;
    }
    if (word !== '--to' || folder === undefined || rest.length > 0) throw new UsageFault(USAGE.trimEnd());
    const from = folderOfLog(here.env);
    const target = join(resolve(folder), 'log.sqlite');
    if (existsSync(target)) throw new UsageFault(`Cannot salvage to "${folder}": there is a log in it already`);
    const log = openFolderLog(from);
    try {
      const last = Math.max(log.salvage.last(), knownHead(join(from, 'log.sqlite'))?.position ?? 0);
      return await salvageLog(log, { target, last, say });
    } finally {
      log.close();
    }
  });
}

interface SalvageOptions {
  /** The file of the new log. */
  readonly target: string;
  /** The last position there may be. */
  readonly last: number;
  readonly say: Say;
}

async function salvageLog(log: ReadOnlyLog, { target, last, say }: SalvageOptions): Promise<number> {
  const { chains, unreadable } = chainsOf(log, last);
  keepPrivate();
  mkdirSync(join(target, '..'), { recursive: true });
  const events = await copied(log, { last, chains, target });
  log.assertUnchanged();
  for (const [stream, { revision, reason }] of chains.faults) {
    await say(`left behind: ${namedAs(stream)}: event ${revision}: ${reason}`);
  }
  if (unreadable > 0)
    await say(`${unreadable} events cannot be read: what they were of and began with them is not known`);
  const whole = chains.size - chains.faults.size;
  await say(`Written to ${target}: ${events} events in ${whole} records; ${chains.faults.size} left behind`);
  return chains.faults.size + unreadable === 0 ? EXIT.done : EXIT.failed;
}

function chainsOf({ salvage }: ReadOnlyLog, last: number): { chains: StreamChains; unreadable: number } {
  const chains = new StreamChains(nodeSystem().sha256);
  let unreadable = 0;
  for (const event of salvage.events(last)) {
    if ('reason' in event) unreadable += 1;
    else chains.take(event);
  }
  for (const [stream, revision] of salvage.ends()) chains.expectEnd(stream, revision);
  return { chains, unreadable };
}

/** Copies the whole streams to a new log, in the log's order. Returns how many events. */
async function copied(
  { salvage }: ReadOnlyLog,
  { last, chains, target }: { readonly last: number; readonly chains: StreamChains; readonly target: string },
): Promise<number> {
  let events = 0;
  const copy = await openEmbeddedLog({ file: target });
  try {
    let appends: Promise<unknown>[] = [];
    for (const event of salvage.events(last)) {
      if ('reason' in event || chains.faults.has(event.stream)) continue;
      const { stream, revision } = event;
      // Begun in order, so that the log takes them in this order.
      appends.push(copy.append(stream, [newEventOf(event)], revision === 0 ? 'none' : revision - 1));
      events += 1;
      if (appends.length < AT_ONCE) continue;
      await Promise.all(appends);
      appends = [];
    }
    await Promise.all(appends);
  } finally {
    await copy.close();
  }
  return events;
}

/** A stream's display name: its kind and its id. */
function namedAs(stream: string): string {
  return stream.replace('-', ' ');
}
