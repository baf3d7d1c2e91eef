import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ConfigInvalid, CouncilError } from '../../src/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import type { ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

interface Ran {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('The process', () => {
  let dir: TempDir;
  let children: ChildProcess[];

  beforeEach(() => {
    dir = tempDir();
    children = [];
  });

  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    dir.remove();
  });

  /** Puts a file in the place of the log. */
  function spoiltRecord(bytes: Buffer): { readonly file: string; readonly isAsItWas: () => boolean } {
    const file = join(dir.path, 'log.sqlite');
    writeFileSync(file, bytes);
    return { file, isAsItWas: () => readFileSync(file).equals(bytes) };
  }

  /**
   * The error of a start in this process. A process of its own ends with this text as its only line, as other tests
   * here show.
   */
  async function refusalHere(settings: ServiceOverrides): Promise<Error> {
    const refusal = await rejectionOf(startService(settings));
    if (!(refusal instanceof CouncilError))
      throw new Error('It is refused with no line of its own', { cause: refusal });
    expect(refusal.message.trim().split('\n')).to.have.lengthOf(1);
    return refusal;
  }

  function run(environment: Record<string, string> = {}) {
    const data = environment['DATA_DIR'] ?? join(dir.path, 'data');
    const child = spawn(process.execPath, [MAIN], {
      env: { PATH: process.env['PATH'], PORT: '0', DATA_DIR: data, ...eventStoreEnvironment(data), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const output = { stdout: '', stderr: '' };
    let look = (): void => undefined;
    child.stdout.on('data', (chunk: Buffer) => {
      output.stdout += chunk.toString();
      look();
    });
    child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
    const ended = new Promise<Ran>((resolve) => {
      child.on('close', (code, signal) => resolve({ code, signal, ...output }));
    });
    const url = new Promise<string>((resolve) => {
      look = (): void => {
        const found = /^listening on (http:\S+)$/m.exec(output.stdout)?.[1];
        if (found !== undefined) resolve(found);
      };
    });
    return { child, ended, url };
  }

  soakIt('continues after its output is closed, and stops while a refused upgrade is half open', async () => {
    const { child, ended, url } = run();
    const address = await url;
    child.stdout.destroy();
    for (let i = 0; i < 3; i += 1) {
      const started = await fetch(`${address}/api/councils/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ input_topic: 'The sea' }),
      });
      expect(started.status).to.equal(202);
    }
    const { hostname, port } = new URL(address);
    const silent = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    silent.on('error', () => undefined);
    silent.write('GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const answer = await new Promise<string>((resolve) => silent.once('data', (data) => resolve(data.toString())));
    expect(answer).to.match(/^HTTP\/1\.1 404 /);
    child.kill('SIGTERM');
    expect(await ended).to.include({ code: 0 });
    silent.destroy();
  });

  it('opens no debugger on SIGUSR1', async () => {
    const { child, ended, url } = run();
    const address = await url;
    child.kill('SIGUSR1');
    for (let i = 0; i < 20; i += 1) expect((await fetch(`${address}/api/health`)).status).to.equal(200);
    child.kill('SIGTERM');
    const { code, stderr } = await ended;
    expect([code, stderr]).to.deep.equal([0, '']);
  });

  it('writes its address first, refuses a used folder or port, and exits with code 0 on SIGTERM, even if sent twice', async () => {
    const first = run();
    const address = await first.url;
    const { port } = new URL(address);
    const folder = await run().ended;
    expect(folder.code).to.equal(1);
    expect(folder.stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(folder.stderr).to.include(`process ${first.child.pid}`);
    const { code, stderr } = await run({ PORT: port, DATA_DIR: join(dir.path, 'other') }).ended;
    expect(code).to.equal(2);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.include('PORT').and.include(port);
    first.child.kill('SIGTERM');
    first.child.kill('SIGTERM');
    const { stdout, ...end } = await first.ended;
    expect(end).to.include({ code: 0, signal: null });
    const lines = stdout.split('\n');
    expect(JSON.parse(lines[0] ?? ''))
      .to.have.property('msg')
      .that.includes(address);
    expect(lines).to.include(`listening on ${address}`);
  });

  soakIt('refuses a log that is no database, in one line that names the file', async () => {
    const { file, isAsItWas } = spoiltRecord(Buffer.from('x'.repeat(9_000)));
    const { code, stderr } = await run({ DATA_DIR: dir.path, EVENTSTORE_URL: '' }).ended;
    expect(code).to.equal(1);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.include(file);
    expect(isAsItWas()).to.equal(true);
  });

  for (const [what, bytes] of [
    ['was emptied', Buffer.alloc(0)],
    ['was cut', Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4_000)])],
  ] as const) {
    it(`refuses a log that ${what}, in one line that names the file`, async () => {
      const { file, isAsItWas } = spoiltRecord(bytes);
      const refusal = await refusalHere({ dataDir: dir.path, eventStore: null });
      expect(refusal).not.to.be.instanceOf(ConfigInvalid);
      expect(refusal.message).to.include(file);
      expect(isAsItWas()).to.equal(true);
    });
  }

  it('refuses every address without keys, releases its folder, and accepts them with AUTH=off', async () => {
    const { code, stdout, stderr } = await run({ HOST: '0.0.0.0' }).ended;
    expect([code, stdout]).to.deep.equal([2, '']);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.include('HOST="0.0.0.0"').and.include('AUTH=off').and.include('council keys add');
    expect(existsSync(join(dir.path, 'data', 'holder.json'))).to.equal(false);
    const open = run({ HOST: '0.0.0.0', AUTH: 'off' });
    const url = (await open.url).replace('0.0.0.0', '127.0.0.1');
    expect((await fetch(`${url}/api/runs`)).status).to.equal(200);
    open.child.kill('SIGINT');
    open.child.kill('SIGINT');
    const { stdout: output, ...end } = await open.ended;
    expect(end).to.include({ code: 0, signal: null });
    const warnings = output.split('\n').filter((line) => line.includes('"level":40'));
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.include('AUTH=off');
  });

  for (const settings of [{ host: '192.0.2.1', auth: 'off' }, { host: 'no such host' }] as const) {
    it(`refuses "${settings.host}" as HOST in one line, and leaves no log open`, async () => {
      const open = new Set<EventLog>();
      const decorate = (log: EventLog): EventLog => {
        open.add(log);
        return changedLog(log, { close: () => log.close().finally(() => open.delete(log)) });
      };
      const refusal = await refusalHere({ dataDir: dir.path, decorate, ...settings });
      expect([...open]).to.deep.equal([]);
      expect(refusal).to.be.instanceOf(ConfigInvalid);
      expect(refusal.message).to.include(`HOST="${settings.host}"`).and.include(': use ');
    });
  }

  // config.test.ts tests the values of settings.
  const refusals: readonly (readonly [string, Record<string, string>])[] = [
    ['DATA_DIR', { DATA_DIR: MAIN }],
    ['DATA_DIR', { DATA_DIR: '/proc/nope' }],
  ];
  for (const [variable, environment] of refusals) {
    it(`refuses ${JSON.stringify(environment[variable]?.slice(-20))} as ${variable} in one line with exit code 2`, async () => {
      const { code, stderr } = await run(environment).ended;
      expect(code).to.equal(2);
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
      expect(stderr).to.include(variable).and.include(': use ');
    });
  }
});
