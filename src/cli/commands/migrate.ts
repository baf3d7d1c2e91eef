/** `council migrate`: copies the embedded log of a stopped service into the server that EVENTSTORE_URL names. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { nodeSystem } from '../../system/system.js';
import { readConfig } from '../../config.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { copyLog } from '../../eventsourcing/copy-log.js';
import { openLog } from '../../eventlog/open.js';
import { onSignals } from '../../system/signals.js';
import { printable } from '../terminal/printer.js';

/** Exit codes: the copy is incomplete; a setting is unusable. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

async function migrate(): Promise<void> {
  const system = nodeSystem();
  const { dataDir: folder, eventStore } = readConfig(process.env);
  if (eventStore === null) {
    const accepted = 'the connection string of the server to copy to';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '', accepted });
  }
  if (!existsSync(join(resolve(folder), 'log.sqlite'))) {
    throw new ConfigInvalid({ variable: 'DATA_DIR', value: folder, accepted: 'a folder with an embedded log in it' });
  }
  const stopping = new AbortController();
  onSignals(
    system,
    () => stopping.abort(new Error('Stopped')),
    () => process.exit(EXIT_FAILED),
  );
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  const parts = { file: dataDir.logFile, onBroken: () => undefined, system };
  const from = await openLog({ ...parts, eventStore: null });
  const to = await openLog({ ...parts, eventStore });
  try {
    const { events, streams, found } = await copyLog(from, to, {
      system,
      sha256: system.sha256,
      signal: stopping.signal,
      // Heartbeats of instances that no longer run.
      isSkipped: (stream) => stream.startsWith('instance-'),
      onProgress: (count) => say(`${count.toLocaleString('en-US')} events`),
    });
    const before = found === 0 ? '' : `, ${found.toLocaleString('en-US')} of them there before`;
    say(
      `Copied and verified: ${events.toLocaleString('en-US')} events in ${streams.toLocaleString('en-US')} streams${before}`,
    );
  } finally {
    await Promise.all([from.close(), to.close()]);
    dataDir.release();
  }
}

function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

migrate().catch((error: unknown) => {
  say(error instanceof CouncilError ? error.message : error instanceof Error ? (error.stack ?? '') : String(error));
  process.exitCode = error instanceof ConfigInvalid ? EXIT_USAGE : EXIT_FAILED;
});
