/**
 * `council check`: checks the embedded log of a stopped service: its file, every hash chain in it, and whether events
 * are missing at its end. With `--accept-loss` the service starts on a log, also of a server, that has lost its end or
 * its keys, or is another one.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { nodeSystem } from '../../system/system.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { ACCEPTED_FILE } from '../../app/ledger.js';
import { forgetSeenLog } from '../../app/seen-log.js';
import { readConfig } from '../../config.js';
import { forgetHead, knownHead, lossOf } from '../../eventlog/embedded/head-file.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { LogUnreadable } from '../../eventlog/port.js';
import type { Checkpoint } from '../../ledger/note.js';
import { checkpointIn } from '../../ledger/note.js';
import type { System } from '../../system/system.js';
import { reasonOf } from '../../system/untrusted.js';
import { folderIn, folderOfLog, openFolderLog } from '../records/folder-log.js';
import { ledgerDifferences } from '../records/ledger-check.js';
import { StreamChains } from '../records/stream-chains.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { HELP, execute, printLines } from './command.js';
import { ArgumentInvalid, EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council check [--accept-loss | --checkpoint FILE]

Checks whether the log in DATA_DIR is complete and intact. The service must be stopped.

  --accept-loss  accept the log as it is, so that the service starts on it although it lacks events or API keys that
                 DATA_DIR has seen. Also for the log that EVENTSTORE_URL names
  --checkpoint FILE
                 tell in one line whether the log still contains what a checkpoint covers that you have kept elsewhere
                 (GET /ledger/checkpoint), or since which size it was rolled back or rewritten
  --help         show this text

Exit code: 0 the log is intact, 1 it is not, 2 wrong usage or setting, 5 DATA_DIR is in use or unreadable.`;

const OPTIONS = { ...HELP, 'accept-loss': { type: 'boolean' }, checkpoint: { type: 'string' } } as const;

/** Most faults reported of a log. */
const MAX_FAULTS = 20;

export function check(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, { print }) => {
    if (positionals.length > 0) throw new UsageFault('Too many words');
    const deps = { system: nodeSystem(), say: printLines(print) };
    if (values['accept-loss'] === true) return await acceptLoss(here.env, deps);
    if (values.checkpoint !== undefined)
      return await checkByCheckpoint(folderOfLog(here.env), savedCheckpoint(values.checkpoint), deps);
    return await checkLog(folderOfLog(here.env), deps);
  });
}

interface CheckDeps {
  readonly system: System;
  readonly say: (line: string) => Promise<void>;
}

/** Forgets what the folder has seen of its log, and the views, which the service rebuilds from the log. */
async function acceptLoss(env: NodeJS.ProcessEnv, { system, say }: CheckDeps): Promise<number> {
  const dataDir = openDataDirectory(folderIn(env), { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  try {
    const { logFile, viewsDir } = dataDir;
    const hadKeys = forgetSeenLog(dataDir);
    rmSync(viewsDir, { recursive: true, force: true });
    writeFileSync(join(dataDir.path, ACCEPTED_FILE), '');
    const isLost = readConfig(env).eventStore === null && !forgetEmbeddedLog(logFile);
    await say(
      isLost ? 'There is no log. The service starts a new one' : 'The loss is accepted. The service starts on this log',
    );
    if (hadKeys)
      await say(
        'This folder has seen a log with API keys. If they are lost, every caller may do everything: ' +
          'add one with `council keys add` before the start',
      );
    return EXIT.done;
  } finally {
    dataDir.release();
  }
}

/**
 * Forgets the last known end of the embedded log. Removes an empty file, or a journal without its file: neither is a
 * log, and the service needs the place for a new one.
 *
 * @returns whether there is a log
 */
function forgetEmbeddedLog(file: string): boolean {
  forgetHead(file);
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return true;
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
  return false;
}

async function checkLog(folder: string, { system: { sha256 }, say }: CheckDeps): Promise<number> {
  const file = join(folder, 'log.sqlite');
  const known = knownHead(file);
  const log = openFolderLog(folder);
  try {
    const last = log.salvage.last();
    const identity = identityOf(log);
    const loss = known && lossOf({ identity: identity ?? known.identity, position: last }, known);
    const chains = new StreamChains(log.salvage, { last, sha256 });
    const damage = [...log.faults(), ...faultsOf(chains, log.removed())];
    for (const { size, what } of await ledgerDifferences(log, chains, null))
      damage.push(`leaf ${size - 1} of the ledger: ${what}`);
    const found = [...(loss === null ? [] : [loss]), ...damage];
    log.assertUnchanged();
    await say(
      `${file}: ${countOf(chains.events, 'event')} in ${countOf(chains.size, 'stream')}, the last at position ${last}`,
    );
    for (const fault of found.slice(0, MAX_FAULTS)) await say(`- ${fault}`);
    if (found.length > MAX_FAULTS) await say(`- and ${found.length - MAX_FAULTS} more`);
    if (damage.length > 0) await say('The log is not intact. Copy the intact records with `council salvage --to DIR`');
    else if (loss !== null)
      await say('The log is not intact. Restore what is missing, or accept the loss with --accept-loss');
    else await say('The log is intact');
    return found.length === 0 ? EXIT.done : EXIT.failed;
  } finally {
    log.close();
  }
}

/** A checkpoint that was kept elsewhere. @throws {ArgumentInvalid} it cannot be read */
function savedCheckpoint(file: string): Checkpoint {
  try {
    return checkpointIn(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ArgumentInvalid({ subject: `the checkpoint "${file}"`, reason: reasonOf(error) });
  }
}

/** Says in one line whether the log contains what a checkpoint covers. */
async function checkByCheckpoint(folder: string, saved: Checkpoint, { system, say }: CheckDeps): Promise<number> {
  const log = openFolderLog(folder);
  try {
    const chains = new StreamChains(log.salvage, { last: log.salvage.last(), sha256: system.sha256 });
    const [first] = await ledgerDifferences(log, chains, saved);
    log.assertUnchanged();
    if (first === undefined) await say(`The log contains all that the checkpoint of size ${saved.size} covers`);
    else await say(`The log was rolled back or rewritten: it differs from size ${first.size} on: ${first.what}`);
    return first === undefined ? EXIT.done : EXIT.failed;
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

/** A line for each unreadable event, for the first fault in the hash chain of each stream, and for each stream that is lost. */
function faultsOf(chains: StreamChains, removed: readonly string[]): readonly string[] {
  const lost = removed.filter((stream) => !chains.erased.has(stream));
  return [
    ...chains.unreadable.map(({ position, reason }) => `the event at position ${position} is unreadable (${reason})`),
    ...[...chains.faults].map(([stream, { revision, reason }]) => `event ${revision} of ${stream}: ${reason}`),
    ...lost.map((stream) => `the events of ${stream} are gone, and no erasure is recorded`),
  ];
}
