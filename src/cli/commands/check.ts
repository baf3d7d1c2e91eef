/**
 * `council check`: tells whether the embedded log of a stopped service is whole: its file, every hash chain in it, and
 * whether it ends where it was last seen to end. With `--accept-loss` a log that has lost its end is taken as it is.
 */
import { existsSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { nodeSystem } from '../../system/system.js';
import { readConfig } from '../../config.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { checkLink, exportedOf, GENESIS_HASH } from '../../eventsourcing/hash-chain.js';
import { forgetHead, knownHead, lossOf } from '../../eventlog/embedded/head-file.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { openLogReadOnly } from '../../eventlog/embedded/read-only.js';
import type { RecordedEvent } from '../../eventlog/port.js';
import type { System } from '../../system/system.js';
import { printable } from '../terminal/printer.js';
import { EXIT, exitOfError } from './exit-codes.js';
import { UsageFault } from './run-request.js';

const USAGE = `Usage: council check [--accept-loss]

Tells whether the log in DATA_DIR is whole; the service is stopped. Exit code 0: it is, 1: it is not.
  --accept-loss   takes what there is of a log that has lost something: the service then starts on it
`;

/** Most faults told of a log. */
const MAX_FAULTS = 20;

async function main(words: readonly string[]): Promise<number> {
  const [word, ...rest] = words;
  if (word === '--help' || word === '-h') {
    process.stdout.write(USAGE);
    return EXIT.done;
  }
  if (rest.length > 0 || (word !== undefined && word !== '--accept-loss')) throw new UsageFault(USAGE.trimEnd());
  const system = nodeSystem();
  const { dataDir, eventStore } = readConfig(process.env);
  if (eventStore !== null) {
    const accepted = 'nothing: the log of a server is checked by its own means';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '(set)', accepted });
  }
  if (!existsSync(dataDir)) throw new ConfigInvalid({ variable: 'DATA_DIR', value: dataDir, accepted: 'a folder' });
  if (word === '--accept-loss') return acceptLoss(dataDir, system);
  return await check(resolve(dataDir), system);
}

/** Whatever was known of the log beside it is forgotten; views are folded again from what there is. */
function acceptLoss(folder: string, system: System): number {
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  try {
    const { logFile, viewsDir } = dataDir;
    forgetHead(logFile);
    rmSync(viewsDir, { recursive: true, force: true });
    const isLost = (statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) === 0;
    // Neither an empty file nor a journal without its file can be a log; a new one is begun in their place.
    if (isLost) for (const suffix of ['', '-wal', '-shm']) rmSync(logFile + suffix, { force: true });
    say(isLost ? 'There is no log: the service begins a new one' : 'The log is taken as it is');
    return EXIT.done;
  } finally {
    dataDir.release();
  }
}

async function check(folder: string, { sha256 }: System): Promise<number> {
  const file = join(folder, 'log.sqlite');
  const known = knownHead(file);
  const log = openLogReadOnly(file);
  try {
    const end = log.end();
    const loss = known && lossOf(end, known);
    const { events, streams, faults } = await chainsOf(log, sha256);
    const found = [...(loss === null ? [] : [loss]), ...log.faults(), ...faults];
    log.assertUnchanged();
    say(`${file}: ${events} events in ${streams} streams, the last at ${end.position}`);
    for (const fault of found.slice(0, MAX_FAULTS)) say(`- ${fault}`);
    if (found.length > MAX_FAULTS) say(`- and ${found.length - MAX_FAULTS} more`);
    say(found.length === 0 ? 'It is whole' : 'It is not whole');
    return found.length === 0 ? EXIT.done : EXIT.failed;
  } finally {
    log.close();
  }
}

interface Chains {
  readonly events: number;
  readonly streams: number;
  /** What does not follow, a line each; of a stream its first alone. */
  readonly faults: readonly string[];
}

/** Follows the hash chain of every stream. */
async function chainsOf(log: ReadOnlyLog, sha256: System['sha256']): Promise<Chains> {
  const heads = new Map<string, { readonly revision: number; readonly hash: string } | null>();
  const faults: string[] = [];
  let events = 0;
  for await (const event of log.readAll()) {
    events += 1;
    const before = heads.get(event.stream) ?? { revision: -1, hash: GENESIS_HASH };
    if (heads.get(event.stream) === null) continue;
    const fault = faultOf(event, before, sha256);
    if (fault !== null) faults.push(`event ${event.revision} of ${event.stream}: ${fault}`);
    heads.set(event.stream, fault === null ? { revision: event.revision, hash: event.metadata['hash'] ?? '' } : null);
  }
  return { events, streams: heads.size, faults };
}

function faultOf(
  event: RecordedEvent,
  before: { readonly revision: number; readonly hash: string },
  sha256: System['sha256'],
): string | null {
  if (event.revision !== before.revision + 1) return 'an event before it is missing';
  try {
    const follows = checkLink(before.hash, exportedOf(event), sha256);
    return follows ? null : 'its hash does not follow from the event before it and its own fields';
  } catch (error) {
    return `it cannot be read (${error instanceof Error ? error.message : String(error)})`;
  }
}

function say(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

main(process.argv.slice(3)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    const text =
      error instanceof Error ? (error instanceof CouncilError ? error.message : (error.stack ?? '')) : String(error);
    process.stderr.write(`${printable(text)}\n`);
    process.exitCode = exitOfError(error, null);
  },
);
