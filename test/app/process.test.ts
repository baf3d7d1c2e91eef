import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';

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

  it('shows its address on the first log line, and exits 0 on SIGTERM, even if sent twice', async () => {
    const { child, ended, url } = run();
    const address = await url;
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    const { stdout, ...end } = await ended;
    expect(end).to.include({ code: 0, signal: null });
    const [first = ''] = stdout.split('\n');
    expect(JSON.parse(first)).to.have.property('msg').that.includes(address);
    expect(stdout.split('\n')).to.include(`listening on ${address}`);
  });

  it('runs on after its output is closed, and stops while a refused upgrade stays half open', async () => {
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

  it('cannot share a data directory or port with another; the first exits 0 on SIGINT', async () => {
    const first = run();
    const { port } = new URL(await first.url);
    const folder = await run().ended;
    expect(folder.code).to.equal(1);
    expect(folder.stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(folder.stderr).to.include(`process ${first.child.pid}`);
    const { code, stderr } = await run({ PORT: port, DATA_DIR: join(dir.path, 'other') }).ended;
    expect(code).to.equal(2);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.include('PORT').and.include(port);
    first.child.kill('SIGINT');
    first.child.kill('SIGINT');
    expect(await first.ended).to.include({ code: 0, signal: null });
  });

  for (const [what, bytes] of [
    ['is no database', Buffer.from('x'.repeat(9_000))],
    ['was emptied', Buffer.alloc(0)],
    ['was cut', Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4_000)])],
  ] as const) {
    it(`is refused a record that ${what}, on one line that names the file`, async () => {
      const file = join(dir.path, 'log.sqlite');
      writeFileSync(file, bytes);
      const { code, stderr } = await run({ DATA_DIR: dir.path, EVENTSTORE_URL: '' }).ended;
      expect(code).to.equal(1);
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
      expect(stderr).to.include(file);
      expect(readFileSync(file).equals(bytes)).to.equal(true);
    });
  }

  it('is refused all addresses without keys, lets go of its folder, and has them with AUTH=off', async () => {
    const { code, stdout, stderr } = await run({ HOST: '0.0.0.0' }).ended;
    expect([code, stdout]).to.deep.equal([2, '']);
    expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    expect(stderr).to.include('HOST="0.0.0.0"').and.include('AUTH=off').and.include('council keys add');
    expect(existsSync(join(dir.path, 'data', 'holder.json'))).to.equal(false);
    const open = run({ HOST: '0.0.0.0', AUTH: 'off' });
    const url = (await open.url).replace('0.0.0.0', '127.0.0.1');
    expect((await fetch(`${url}/api/runs`)).status).to.equal(200);
    open.child.kill('SIGTERM');
    const warnings = (await open.ended).stdout.split('\n').filter((line) => line.includes('"level":40'));
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.include('AUTH=off');
  });

  // What the settings say by themselves is told in config.test.ts.
  const refusals: readonly (readonly [string, Record<string, string>])[] = [
    ['HOST', { HOST: '192.0.2.1', AUTH: 'off' }],
    ['HOST', { HOST: 'no such host' }],
    ['DATA_DIR', { DATA_DIR: MAIN }],
    ['DATA_DIR', { DATA_DIR: '/proc/nope' }],
  ];
  for (const [variable, environment] of refusals) {
    it(`refuses ${JSON.stringify(environment[variable]?.slice(-20))} as ${variable} in one line with exit code 2`, async () => {
      const { code, stderr } = await run(environment).ended;
      expect(code).to.equal(2);
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
      expect(stderr).to.include(variable).and.include('is accepted');
    });
  }
});
