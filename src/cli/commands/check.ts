/**
 * `council check`: tells whether the embedded log of a stopped service is whole: its file, every hash chain in it, and
 * whether it ends where it was last seen to end. With `--accept-loss` a log that has lost its end is taken as it is.
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
import { UsageFault } from './command.js';
import type { CommandProcess } from './command.js';
import type { Say } from './exit-codes.js';
import { EXIT, exitOfLogCommand } from './exit-codes.js';

const USAGE = `Usage: council check [--accept-loss]

Tells whether the log in DATA_DIR is whole; the service is stopped. Exit code 0: it is, 1: it is not.
  --accept-loss   takes what there is of a log that has lost something: the service then starts on it
`;

/** Most faults reported of a log. */
const MAX_FAULTS = 20;

export function check([, word, ...rest]: readonly string[], here: CommandProcess): Promise<number> {
  return exitOfLogCommand(here, async (say) => {
    if (word === '--help' || word === '-h') {
      await say(USAGE.trimEnd());
      return EXIT.done;
    }
    if (rest.length > 0 || (word !== undefined && word !== '--accept-loss')) throw new UsageFault(USAGE.trimEnd());
    const system = nodeSystem();
    const dataDir = folderOfLog(here.env);
    if (word === '--accept-loss') return await acceptLoss(dataDir, { system, say });
    return await checkLog(dataDir, { system, say });
  });
}

interface CheckDeps {
  readonly system: System;
  readonly say: Say;
}

/** Forgets what the folder knows of the log; the views are folded again from what is there. */
async function acceptLoss(folder: string, { system, say }: CheckDeps): Promise<number> {
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  try {
    const { logFile, viewsDir } = dataDir;
    forgetHead(logFile);
    rmSync(viewsDir, { recursive: true, force: true });
    const isLost = (statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) === 0;
    // An empty file, or a journal without its file, is no log: both make room for a new one.
    if (isLost) for (const suffix of ['', '-wal', '-shm']) rmSync(logFile + suffix, { force: true });
    await say(isLost ? 'There is no log: the service begins a new one' : 'The log is taken as it is');
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
    await say(`${file}: ${events} events in ${streams} streams, the last at ${last}`);
    for (const fault of found.slice(0, MAX_FAULTS)) await say(`- ${fault}`);
    if (found.length > MAX_FAULTS) await say(`- and ${found.length - MAX_FAULTS} more`);
    await say(found.length === 0 ? 'It is whole' : 'It is not whole: `council salvage --to DIR` saves what is');
    return found.length === 0 ? EXIT.done : EXIT.failed;
  } finally {
    log.close();
  }
}

/** Null where it cannot be read. */
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
  /** The faults, a line each: events that cannot be read or do not follow, of each stream the first. */
  readonly faults: readonly string[];
}

/** Verifies the hash chain of every stream. */
function chainsOf({ salvage }: ReadOnlyLog, { last, sha256 }: { last: number; sha256: System['sha256'] }): Chains {
  const chains = new StreamChains(sha256);
  const faults: string[] = [];
  let events = 0;
  for (const event of salvage.events(last)) {
    if ('reason' in event) faults.push(`the event at ${event.position} cannot be read (${event.reason})`);
    else chains.take(event);
    events += 1;
  }
  for (const [stream, revision] of salvage.ends()) chains.expectEnd(stream, revision);
  for (const [stream, { revision, reason }] of chains.faults) {
    faults.push(`event ${revision} of ${stream}: ${reason}`);
  }
  return { events, streams: chains.size, faults };
}
