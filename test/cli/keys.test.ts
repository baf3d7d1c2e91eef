import { expect } from 'chai';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { ChildExit } from '../support/child.js';
import { commandHere, councilKeys } from '../support/council-command.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { folderPrint } from '../support/folder-print.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const KEY_LINE = /^council_[A-Za-z0-9_-]{43}\n$/;

function expectOneLine({ code, stdout, stderr }: ChildExit, wanted: number, told: RegExp): void {
  expect({ code, stdout }, stderr).to.deep.equal({ code: wanted, stdout: '' });
  expect(stderr.trimEnd().split('\n'), stderr).to.have.lengthOf(1);
  expect(stderr).to.match(told);
}

describe('council keys on the folder of a stopped service', () => {
  let dir: TempDir;
  let env: Record<string, string>;
  const ask = (...words: readonly string[]): Promise<ChildExit> => councilKeys(words, env);

  beforeEach(() => {
    dir = tempDir();
    env = { DATA_DIR: join(dir.path, 'data') };
  });
  afterEach(() => dir.remove());

  it('prints the first key alone on standard output, and the service in that folder needs it', async () => {
    const { code, stdout, stderr } = await ask('add', 'ann', '--scopes', 'admin,read');
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(KEY_LINE);
    expect(stderr).to.include('Key "ann" is added, with read, admin').and.include('COUNCIL_KEY');
    expect(stderr).not.to.include(stdout.trim());
    const service = await startService({ model: scriptedModel(), dataDir: join(dir.path, 'data'), eventStore: null });
    const headers = { Authorization: `Bearer ${stdout.trim()}` };
    const answers = [await fetch(`${service.url}/api/runs`), await fetch(`${service.url}/api/runs`, { headers })];
    await service.stop();
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 200]);
  });

  it('refuses a name for a second time, and a first key without admin', async () => {
    expectOneLine(await ask('add', 'ann', '--scopes', 'read'), 2, /first key needs the scope admin/);
    await ask('add', 'ann', '--scopes', 'admin');
    expectOneLine(await ask('add', 'ann', '--scopes', 'read'), 2, /"ann": the name was given before/);
  });

  it('lists the keys without their texts, and changes no byte', async () => {
    const added = await ask('add', 'ann', '--scopes', 'admin');
    const expiring = await ask('add', 'ci', '--scopes', 'run', '--scopes', 'read', '--expires', '30d');
    await ask('revoke', 'ann');
    const before = folderPrint(dir.path);
    const { code, stdout } = await ask('list');
    const json = await ask('list', '--json');
    expect(folderPrint(dir.path)).to.deep.equal(before);
    const today = nodeSystem().now().slice(0, 10);
    const until = new Date(Date.parse(today) + 30 * 86_400_000).toISOString().slice(0, 10);
    expect([code, stdout]).to.deep.equal([
      0,
      `ann  admin     revoked ${today}      used never\nci   read,run  valid until ${until}  used never\n`,
    ]);
    const listed: unknown = JSON.parse(json.stdout);
    expect(listed).to.have.length(2);
    for (const text of [stdout, json.stdout]) {
      expect(text).not.to.include(added.stdout.trim()).and.not.include(expiring.stdout.trim());
    }
  });

  it('revokes a key, also for a second time, and names an unknown key', async () => {
    await ask('add', 'ann', '--scopes', 'admin');
    expectOneLine(await ask('revoke', 'ann'), 0, /^Key "ann" is revoked$/m);
    expectOneLine(await ask('revoke', 'ann'), 0, /^Key "ann" is revoked$/m);
    expectOneLine(await ask('revoke', 'bob'), 4, /Cannot find key "bob"/);
  });

  it('creates no log to list or to revoke', async () => {
    expectOneLine(await ask('list'), 5, /Cannot read the event log ".*": there is no such file/);
    expectOneLine(await ask('revoke', 'ann'), 5, /there is no such file/);
    expect(existsSync(join(dir.path, 'data'))).to.equal(false);
  });

  it('suggests --url while a service runs on the folder, and unlocks the folder after each command', async () => {
    const dataDir = join(dir.path, 'data');
    const service = await startService({ model: scriptedModel(), dataDir, eventStore: null });
    for (const words of [['add', 'ann', '--scopes', 'admin'], ['list'], ['revoke', 'ann']]) {
      expectOneLine(await ask(...words), 5, new RegExp(`process ${process.pid} .*--url http://HOST:PORT`));
    }
    await service.stop();
    expect((await ask('add', 'ann', '--scopes', 'admin')).code).to.equal(0);
    expect((await ask('add', 'bob', '--scopes', 'read')).code).to.equal(0);
  });

  it('exits 2 with the usage for wrong words, and with one line for an invalid name, scope or expiry', async () => {
    for (const [words, told] of [
      [[], 'add, list or revoke is missing'],
      [['sing'], 'There is no command "keys sing"'],
      [['add'], 'The name of a key is missing'],
      [['add', 'ann'], '--scopes is missing'],
      [['add', 'ann', 'bob', '--scopes', 'read'], 'Too many words'],
      [['list', 'ann'], 'Too many words'],
      [['revoke', 'ann', '--json'], 'council keys revoke takes no --json'],
      [['list', '--url', 'ftp://x'], '--url takes'],
    ] as const) {
      const { code, stdout, stderr } = await ask(...words);
      expect([code, stdout], stderr).to.deep.equal([2, '']);
      expect(stderr).to.include(told).and.include('Usage: council keys add');
    }
    expectOneLine(await ask('add', 'ann', '--scopes', 'read,fly'), 2, /there is no scope "fly"/);
    expectOneLine(await ask('add', 'ann', '--scopes', ''), 2, /there is no scope ""/);
    expectOneLine(await ask('add', 'ann', '--scopes', 'admin', '--expires', 'soon'), 2, /30d/);
    expectOneLine(await ask('add', 'a b', '--scopes', 'admin'), 2, /a name is 1 to 64/);
    env = { ...env, COUNCIL_KEY: 'not a key' };
    expectOneLine(await ask('list', '--url', 'http://127.0.0.1:1'), 2, /COUNCIL_KEY="\(hidden\)"/);
    const help = await ask('--help');
    expect(help).to.include({ code: 0, stderr: '' });
    expect(help.stdout).to.include('Usage: council keys add');
  });
});

describe('council keys add when the new key is lost', () => {
  it('exits 1 and says that the key may exist', async () => {
    const dir = tempDir();
    const cut = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1');
    await once(cut, 'listening');
    const words = ['add', 'ann', '--scopes', 'admin'];
    const full = (fault: NodeJS.ErrnoException): Promise<ChildExit> => {
      const env = { DATA_DIR: join(dir.path, fault.code ?? '') };
      const stdout = { write: (_text: unknown, done: (error: Error) => void) => done(fault) };
      return commandHere(['keys', ...words], { env }, { stdout });
    };
    const faults = ['ENOSPC', 'EPIPE'].map((code) => Object.assign(new Error('no space'), { code }));
    const unwritten = await Promise.all(faults.map(full));
    const url = `http://127.0.0.1:${(cut.address() as AddressInfo).port}`;
    const lost = await councilKeys([...words, '--url', url], {});
    cut.close();
    dir.remove();
    for (const { code, stderr } of [...unwritten, lost]) {
      expect(code).to.equal(1);
      expect(stderr).to.match(/^Cannot show key "ann", which may exist; revoke it: /);
    }
  });
});

describe('council keys at a server that refuses with the status of another refusal', () => {
  it('shows the refusal, and names no key as taken or unknown', async () => {
    const full = createServer((request, answer) =>
      answer.writeHead(request.method === 'POST' ? 409 : 404).end('{"detail":"Too many keys"}'),
    ).listen(0, '127.0.0.1');
    await once(full, 'listening');
    const at = ['--url', `http://127.0.0.1:${(full.address() as AddressInfo).port}`];
    expectOneLine(await councilKeys(['add', 'ann', '--scopes', 'admin', ...at], {}), 1, /^Too many keys$/m);
    expectOneLine(await councilKeys(['revoke', 'ann', ...at], {}), 1, /^Too many keys$/m);
    full.close();
  });
});

describe('council keys on the log of a server', () => {
  it('adds, lists and revokes keys there, and creates no folder', async () => {
    const dir = tempDir();
    const server: FakeEventStore = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const env = { EVENTSTORE_URL: server.url, EVENTSTORE_PREFIX: 't1', DATA_DIR: join(dir.path, 'data') };
    try {
      expect((await councilKeys(['add', 'ann', '--scopes', 'admin'], env)).stdout).to.match(KEY_LINE);
      expect((await councilKeys(['revoke', 'ann'], env)).code).to.equal(0);
      expect((await councilKeys(['list'], env)).stdout).to.match(/^ann {2}admin {2}revoked [\d-]+ {2}used never\n$/);
      expect(existsSync(env.DATA_DIR)).to.equal(false);
      await server.kill();
      expectOneLine(await councilKeys(['list'], env), 3, /Cannot reach the event log/);
    } finally {
      await server.stop();
      dir.remove();
    }
  });
});

describe('council keys on the log of a server that came back empty', () => {
  it('says that the keys are lost, for the folder that has seen them', async () => {
    const dir = tempDir();
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const dataDir = join(dir.path, 'data');
    const env = { EVENTSTORE_URL: server.url, EVENTSTORE_PREFIX: 't1', DATA_DIR: dataDir };
    try {
      expect((await councilKeys(['add', 'ann', '--scopes', 'admin'], env)).code).to.equal(0);
      await (await startService({ dataDir, eventStore: { url: server.url, prefix: 't1' } })).stop();
      expect((await councilKeys(['list'], env)).code).to.equal(0);
      const empty = { ...env, EVENTSTORE_PREFIX: 't2' };
      for (const words of [['list'], ['add', 'eve', '--scopes', 'admin'], ['revoke', 'ann']])
        expectOneLine(await councilKeys(words, empty), 5, /not the log that this folder held before/);
    } finally {
      await server.stop();
      dir.remove();
    }
  });
});

describe('council keys at a running service', () => {
  let service: RunningService;
  let admin: string;
  const ask = (key: string | null, ...words: readonly string[]): Promise<ChildExit> =>
    councilKeys([...words, '--url', service.url], key === null ? {} : { COUNCIL_KEY: key });

  before(async () => {
    service = await startService({ model: scriptedModel() });
    // The first key needs no other key.
    admin = (await ask(null, 'add', 'ann', '--scopes', 'admin')).stdout.trim();
  });
  after(() => service.stop());

  it('adds a key with the rights of its scopes, lists it, and revokes it with the name of the actor', async () => {
    const { stdout } = await ask(admin, 'add', 'ci', '--scopes', 'read', '--expires', '12h');
    expect(stdout).to.match(KEY_LINE);
    const status = async (): Promise<number> =>
      (await fetch(`${service.url}/api/runs`, { headers: { Authorization: `Bearer ${stdout.trim()}` } })).status;
    expect(await status()).to.equal(200);
    expect((await ask(admin, 'list')).stdout).to.match(/^ci {3}read {3}valid until /m);
    expectOneLine(await ask(admin, 'revoke', 'ci'), 0, /Key "ci" is revoked/);
    expect(await status()).to.equal(401);
    expect((await ask(admin, 'list')).stdout).to.match(/^ci +read +revoked [\d-]+ by ann$/m);
  });

  it('lists the last use of keys only for a key with the scope audit', async () => {
    const auditor = (await ask(admin, 'add', 'zoe', '--scopes', 'audit')).stdout.trim();
    expect((await ask(auditor, 'list')).stdout).to.match(/^ann +admin +valid +used \S+$/m);
    expect((await ask(admin, 'list')).stdout).to.match(/^ann +admin +valid$/m);
  });

  it('reports a wrong key, name or address in one line', async () => {
    const reader = (await ask(admin, 'add', 'eve', '--scopes', 'read')).stdout.trim();
    expectOneLine(await ask(null, 'list'), 2, /A key is required.*COUNCIL_KEY/);
    expectOneLine(await ask(`council_${'x'.repeat(43)}`, 'list'), 2, /The key is unknown.*COUNCIL_KEY/);
    expectOneLine(await ask(reader, 'list'), 2, /The key lacks the scope "admin" or "audit"/);
    expectOneLine(await ask(admin, 'add', 'eve', '--scopes', 'read'), 2, /"eve": the name was given before/);
    expectOneLine(await ask(admin, 'revoke', 'nobody'), 4, /Cannot find key "nobody"/);
    expectOneLine(await ask(admin, 'revoke', '..'), 4, /Cannot find key "\.\."/);
    expectOneLine(await councilKeys(['list', '--url', 'http://127.0.0.1:1'], {}), 3, /Cannot reach the service/);
  });
});
