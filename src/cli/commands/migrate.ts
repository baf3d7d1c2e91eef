/** `council migrate`: copies the embedded log of a stopped service into the server that EVENTSTORE_URL names. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { nodeSystem } from '../../system/system.js';
import type { EventStoreSettings } from '../../config.js';
import { readConfig } from '../../config.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { erasedBy } from '../../app/erasures.js';
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { copyLog } from '../../eventsourcing/copy-log.js';
import { openLog } from '../../eventlog/open.js';
import type { EventLog } from '../../eventlog/port.js';
import { LEDGER_STREAM } from '../../ledger/events.js';
import { printable } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { EXIT, messageOf } from './exit-codes.js';

/** Most streams removed at a time. */
const MAX_REMOVALS = 50;

/** Exit code: 0 copied, 1 the copy is incomplete, 2 a setting is unusable. A second call copies the rest. */
export async function migrate(_words: readonly string[], here: CommandProcess): Promise<number> {
  const say = (text: string): void => void here.stderr.write(`${printable(text)}\n`);
  try {
    await copyToServer(here, say);
    return EXIT.done;
  } catch (error) {
    const isStopped = here.signal.aborted && !(error instanceof CouncilError);
    say(
      isStopped ? 'Stopped. Run the command again to copy the rest' : messageOf(error, { usage: '', takesUrl: false }),
    );
    return error instanceof ConfigInvalid ? EXIT.usage : EXIT.failed;
  }
}

async function copyToServer({ env, signal }: CommandProcess, say: (text: string) => void): Promise<void> {
  const system = nodeSystem();
  const { dataDir: folder, eventStore } = readConfig(env);
  if (eventStore === null) {
    const accepted = 'the connection string of the server to copy to';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '', accepted });
  }
  if (!existsSync(join(resolve(folder), 'log.sqlite'))) {
    throw new ConfigInvalid({ variable: 'DATA_DIR', value: folder, accepted: 'a folder with an embedded log' });
  }
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  const parts = { file: dataDir.logFile, onBroken: () => undefined, system };
  const opened: EventLog[] = [];
  const open = async (settings: EventStoreSettings | null): Promise<EventLog> => {
    const log = await openLog({ ...parts, eventStore: settings });
    opened.push(log);
    return log;
  };
  try {
    const from = await open(null);
    const to = await open(eventStore);
    // Refuses a server whose log needs a newer version, before anything is read or written.
    await to.identity();
    const erased = new Set<string>();
    for await (const event of from.readStream(LEDGER_STREAM)) {
      const erasure = erasedBy(event);
      if (erasure !== null) erased.add(erasure.stream);
    }
    const { events, streams, found } = await copyLog(from, to, {
      system,
      sha256: system.sha256,
      signal,
      // Heartbeats of instances that have stopped.
      isSkipped: (stream) => stream.startsWith('instance-') || erased.has(stream),
      onProgress: (count) => say(`${count.toLocaleString('en-US')} events`),
    });
    // The server refuses their ids too.
    const names = [...erased];
    for (let at = 0; at < names.length; at += MAX_REMOVALS) await to.remove(names.slice(at, at + MAX_REMOVALS));
    const before = found === 0 ? '' : `, ${found.toLocaleString('en-US')} of them already there`;
    say(
      `Copied and verified: ${events.toLocaleString('en-US')} events in ${streams.toLocaleString('en-US')} streams${before}`,
    );
  } finally {
    await Promise.all(opened.map((log) => log.close()));
    dataDir.release();
  }
}
