/**
 * Runs the tests of the service on EventStoreDB: load it by `mocha --require`. It uses the server that EVENTSTORE_URL
 * names, or a fake server in another process. The processes that run tests are started after it, with the same server
 * in their environment.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Child } from './child.js';
import { startChild } from './child.js';
import type { TempDir } from './temp-dir.js';
import { tempDir } from './temp-dir.js';

const SERVER = fileURLToPath(new URL('./fake-event-store-process.js', import.meta.url));

interface Fake {
  readonly url: string;
  readonly child: Child;
  readonly dir: TempDir;
}

let fake: Fake | null = null;

/** Before all tests, once. */
export async function mochaGlobalSetup(): Promise<void> {
  const { EVENTSTORE_URL: real = '', ...env } = process.env;
  if (real === '') fake = await startFake();
  // EVENTSTORE_URL is not a setting of the services that tests start.
  process.env = { ...env, COUNCIL_TEST_EVENTSTORE: fake?.url ?? real };
  process.stdout.write(
    `\n  On ${fake === null ? 'the EventStoreDB that EVENTSTORE_URL names' : 'a fake EventStoreDB'}\n`,
  );
}

/** After all tests, once. */
export async function mochaGlobalTeardown(): Promise<void> {
  await fake?.child.kill();
  fake?.dir.remove();
}

async function startFake(): Promise<Fake> {
  const dir = tempDir();
  const child = startChild(process.execPath, [SERVER, join(dir.path, 'server.sqlite')]);
  await child.waitFor((lines) => lines.length > 0);
  return { url: child.lines[0]?.replace('listening on ', '') ?? '', child, dir };
}
