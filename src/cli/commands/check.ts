/**
 * `council check`: checks the embedded log of a stopped service: its file, every hash chain in it, and whether events
 * are missing at its end. With `--accept-loss` the service starts on a log that has lost its end.
 */
import { rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { nodeSystem } from '../../system/system.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { forgetHead, knownHead, lossOf } from '../../eventlog/embedded/head-file.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { LogUnreadable } from '../../eventlog/port.js';
import type { System } from '../../system/system.js';
import { folderOfLog, openFolderLog } from '../records/folder-log.js';
import { StreamChains } from '../records/stream-chains.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { HELP, execute, printLines } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council check [--accept-loss]

Checks whether the log in DATA_DIR is complete and intact. The service must be stopped.

  --accept-loss  accept the loss of events at the end of the log, so that the service starts on the rest
  --help         show this text

Exit code: 0 the log is intact, 1 it is not, 2 wrong usage or setting, 5 DATA_DIR is in use or unreadable.`;

const OPTIONS = { ...HELP, 'accept-loss': { type: 'boolean' } } as const;

/** Most faults reported of a log. */
const MAX_FAULTS = 20;

export function check(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, { print }) => {
    if (positionals.length > 0) throw new UsageFault('Too many words');
    const deps = { system: nodeSystem(), say: printLines(print) };
    const dataDir = folderOfLog(here.env);
    return values['accept-loss'] === true ? await acceptLoss(dataDir, deps) : await checkLog(dataDir, deps);
  });
}

interface CheckDeps {
  readonly system: System;
  readonly say: (line: string) => Promise<void>;
}

/** Forgets the last known end of the log, and the views, which the service rebuilds from the log. */
async function acceptLoss(folder: string, { system, say }: CheckDeps): Promise<number> {
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  try {
    const { logFile, viewsDir } = dataDir;
    forgetHead(logFile);
    rmSync(viewsDir, { recursive: true, force: true });
    const isLost = (statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) === 0;
    // An empty file, or a journal without its file, is not a log. The service needs its place for a new one.
    if (isLost) for (const suffix of ['', '-wal', '-shm']) rmSync(logFile + suffix, { force: true });
    await say(
      isLost ? 'There is no log. The service starts a new one' : 'The loss is accepted. The service starts on this log',
    );
    return EXIT.done;
  } finally {
    dataDir.release();
  }
}

async function checkLog(folder: string, { system: { sha256 }, say }: CheckDeps): Promise<number> {
  const file = join(folder, 'log.sqlite');
  const known = knownHead(file);
  const log = openFolderLog(folder);
  try {
    const last = log.salvage.last();
    const identity = identityOf(log);
    const loss = known && lossOf({ identity: identity ?? known.identity, position: last }, known);
    const { events, streams, faults } = chainsOf(log, { last, sha256 });
    const found = [...(loss === null ? [] : [loss]), ...log.faults(), ...faults];
    log.assertUnchanged();
    await say(`${file}: ${countOf(events, 'event')} in ${countOf(streams, 'stream')}, the last at position ${last}`);
    for (const fault of found.slice(0, MAX_FAULTS)) await say(`- ${fault}`);
    if (found.length > MAX_FAULTS) await say(`- and ${found.length - MAX_FAULTS} more`);
    await say(
      found.length === 0
        ? 'The log is intact'
        : 'The log is not intact. Copy the intact records with `council salvage --to DIR`',
    );
    return found.length === 0 ? EXIT.done : EXIT.failed;
  } finally {
    log.close();
  }
}

/** The identity of the log, or null if it is unreadable. */
function identityOf(log: ReadOnlyLog): string | null {
  try {
    return log.end().identity;
  } catch (error) {
    if (error instanceof LogUnreadable) return null;
    throw error;
  }
}

interface Chains {
  readonly events: number;
  readonly streams: number;
  /** A line for each unreadable event, and for the first fault in the hash chain of each stream. */
  readonly faults: readonly string[];
}

/** Verifies the hash chain of every stream. */
function chainsOf({ salvage }: ReadOnlyLog, { last, sha256 }: { last: number; sha256: System['sha256'] }): Chains {
  const chains = new StreamChains(sha256);
  const faults: string[] = [];
  let events = 0;
  for (const event of salvage.events(last)) {
    if ('reason' in event) faults.push(`the event at position ${event.position} is unreadable (${event.reason})`);
    else chains.take(event);
    events += 1;
  }
  for (const [stream, revision] of salvage.ends()) chains.expectEnd(stream, revision);
  for (const [stream, { revision, reason }] of chains.faults) {
    faults.push(`event ${revision} of ${stream}: ${reason}`);
  }
  return { events, streams: chains.size, faults };
}
