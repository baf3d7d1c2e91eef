/**
 * Puts the tests of the service on EventStoreDB: `mocha --require` of this file. On the server that EVENTSTORE_URL
 * names, or on a fake one in a process of its own.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Child } from './child.js';
import { startChild } from './child.js';
import { tempDir } from './temp-dir.js';

const SERVER = fileURLToPath(new URL('./fake-event-store-process.js', import.meta.url));
const dir = tempDir();
let child: Child | null = null;

export const mochaHooks = {
  async beforeAll(): Promise<void> {
    const { EVENTSTORE_URL: url = '', ...env } = process.env;
    process.env['COUNCIL_TEST_EVENTSTORE'] = url === '' ? await startFake() : url;
    // Not a setting of the services that tests start.
    process.env = { ...env, COUNCIL_TEST_EVENTSTORE: process.env['COUNCIL_TEST_EVENTSTORE'] };
    process.stdout.write(
      `\n  On ${url === '' ? 'a fake EventStoreDB' : 'the EventStoreDB that EVENTSTORE_URL names'}\n`,
    );
  },
  async afterAll(): Promise<void> {
    await child?.kill();
    dir.remove();
  },
};

async function startFake(): Promise<string> {
  child = startChild(process.execPath, [SERVER, join(dir.path, 'server.sqlite')]);
  await child.waitFor((lines) => lines.length > 0);
  return child.lines[0]?.replace('listening on ', '') ?? '';
}
