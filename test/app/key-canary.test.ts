import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { addFirstKey, addKey, bearer, restWith, signIn } from '../support/keys.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

/** From dist/test/app, where this file runs. */
const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describe('A secret that grants access to the service', () => {
  let dir: TempDir;
  let child: Child;

  before(() => {
    dir = tempDir();
    const environment = { PATH: process.env['PATH'], PORT: '0', DATA_DIR: join(dir.path, 'data'), LOG_LEVEL: 'debug' };
    child = startChild(process.execPath, [MAIN], environment);
  });
  after(async () => {
    await child.kill();
    dir.remove();
  });

  it('appears in no file, log line, answer or export, except the answer that issues it', async () => {
    const url = await addressOf(child);
    const key = await addFirstKey(url);
    const rest = restWith(url, key);
    const other = await addKey(rest, { name: 'other', scopes: ['read'] });
    const cookie = await signIn(url, key);
    const { ticket } = rest.read(await rest.post('/api/tickets'), 201, 'ticket.json');
    const secrets = [key, other, cookie.replace('council_session=', ''), ticket];
    const answers: string[] = [];
    const asked = async (headers: Readonly<Record<string, string>>, method: string, path: string): Promise<void> => {
      const { text, headers: answered } = await restClient(url, headers).send(method, path);
      answers.push(text, JSON.stringify([...answered]));
    };

    const runId = await rest.start();
    const channel = openChannel(url, `/ws/council/${runId}?events=all&ticket=${ticket}`);
    await rest.until(runId, isOver);
    await channel.closed;
    answers.push(JSON.stringify(channel.messages), (await refusedUpgrade(url, `/ws/x?ticket=${ticket}`)).body);
    for (const path of ['/api/keys', '/api/keys/events', '/api/session', '/api/runs/', `/api/runs/${runId}/events`]) {
      await asked(bearer(key), 'GET', path);
    }
    await asked({ ...bearer(key), Accept: 'application/x-ndjson' }, 'GET', `/api/runs/${runId}/events`);
    await asked(bearer(key), 'GET', `/api/nothing?key=${key}`);
    await asked(bearer(other), 'DELETE', '/api/keys/other');
    await asked(bearer(key), 'DELETE', '/api/keys/other');
    await asked(bearer(other), 'GET', '/api/runs/');
    await asked({ Cookie: cookie }, 'DELETE', '/api/session');
    await asked({ Cookie: cookie, Origin: url }, 'DELETE', '/api/session');
    await asked({ Cookie: cookie }, 'GET', '/api/session');
    answers.push(
      (await rest.post('/api/session', { key: other })).text,
      (await rest.post('/api/keys', { name: key })).text,
    );

    const kept = readdirSync(dir.path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    expect(kept.join('')).to.include('KeyAdded');
    expect(child.lines.join('\n')).to.include('key revoked');
    for (const secret of secrets) {
      const bare = secret.replace('council_', '');
      expect(bare).to.have.length(43);
      for (const text of [...kept, ...child.lines, ...answers]) expect(text.includes(bare)).to.equal(false);
    }
  });
});

async function addressOf(child: Child): Promise<string> {
  const found = (lines: readonly string[]): string | undefined =>
    lines.map((line) => /^listening on (http:\S+)$/.exec(line)?.[1]).find((url) => url !== undefined);
  await child.waitFor((lines) => found(lines) !== undefined);
  return found(child.lines) ?? '';
}
