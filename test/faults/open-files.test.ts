import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { BOUNDARY, UPLOAD, fileHead, formOf, partOf, pdfWith } from '../support/upload-client.js';
import { untilTrue } from '../support/until-true.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const MAX_FILES = 256;
const SOCKETS = 400;

const define = (): Mocha.Suite =>
  describe('The limit of open files', () => {
    let dir: TempDir;
    let child: Child;
    let sockets: Socket[] = [];

    before(async () => {
      dir = tempDir();
      const env = { PATH: process.env['PATH'], DATA_DIR: dir.path, PORT: '0', MODEL_PROVIDER: 'offline' };
      const program = ['-c', `ulimit -n ${MAX_FILES}; exec "$0" "$@"`, process.execPath, MAIN];
      child = startChild('sh', program, env);
      await child.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
    });
    after(async () => {
      for (const each of sockets) each.destroy();
      await child.kill();
      dir.remove();
    });

    const url = (): string => child.lines.find((line) => line.startsWith('listening on '))?.slice(13) ?? '';
    const told = (): readonly string[] => child.lines.filter((line) => line.includes('"level":50'));
    /** The used processor time of the service, in milliseconds. */
    const cpuMs = (): number => {
      const [, , , , , , , , , , , , , user, system] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(' ');
      return (Number(user) + Number(system)) * 10;
    };
    /** Opens connections in turn from some addresses, the first after that of the other clients of the test. */
    const crowd = async (addresses: number): Promise<void> => {
      let closed = 0;
      const before = told().length;
      const port = Number(new URL(url()).port);
      sockets = Array.from({ length: SOCKETS }, (_, index) =>
        connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % addresses)}` }),
      );
      for (const each of sockets) each.on('error', () => undefined).on('close', () => (closed += 1));
      await untilTrue(() => closed >= SOCKETS - MAX_FILES && told().length > before);
    };
    const leave = async (): Promise<void> => {
      for (const each of sockets) each.destroy();
      const isServed = (): Promise<boolean> =>
        fetch(`${url()}/api/health`).then(
          (reply) => reply.ok,
          () => false,
        );
      await untilTrue(isServed);
    };

    it('makes the service refuse new connections with one log line, serve open ones, and accept again after some closed', async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const held = (method: string, path: string, body = ''): Promise<number | undefined> =>
        new Promise((resolve, reject) => {
          const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
          const sent = request(url() + path, { method, agent, headers }, (reply) => {
            reply.resume().on('end', () => resolve(reply.statusCode));
          });
          sent.on('error', reject).end(body);
        });
      expect(await held('GET', '/api/health')).to.equal(200);
      await crowd(4);

      const [before, fromMs] = [cpuMs(), performance.now()];
      await untilTrue(() => performance.now() - fromMs > 1_000);
      expect(cpuMs() - before, 'processor time of a second in which nothing is asked').to.be.below(600);
      expect(await held('POST', '/api/councils/run', '{"input_topic":"Trees"}')).to.equal(202);
      expect(await held('GET', '/api/runs/')).to.equal(200);
      expect(told()).to.have.length(1);
      expect(told()[0]).to.include('connections: limit reached');

      await leave();
      const rest = restClient(url());
      await rest.until(await rest.start(), isOver);
      expect(told()).to.have.length(1);
      agent.destroy();
    });

    it('is shared, so that half-open connections of one address lock out no other', async () => {
      const before = told().length;
      await crowd(1);
      expect((await fetch(`${url()}/api/health`)).status).to.equal(200);
      const rest = restClient(url());
      await rest.until(await rest.start(), isOver);
      expect(told()).to.have.length(before + 1);
      expect(told().at(-1)).to.include('an address has its share').and.include('127.0.0.2');
      await leave();
      child.signal('SIGTERM');
      expect((await child.exit).code).to.equal(0);
    });
  });

const defineUpload = (): Mocha.Suite =>
  describe('An upload while no file can be opened', () => {
    it('gets 503 with Retry-After, and succeeds when files can be opened again', async () => {
      const dir = tempDir();
      const env = { PATH: process.env['PATH'], DATA_DIR: dir.path, PORT: '0', MODEL_PROVIDER: 'offline' };
      const child = startChild(process.execPath, [MAIN], env);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        await child.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
        const url = child.lines.at(-1)?.slice('listening on '.length) ?? '';
        const sent = (text: string): Promise<IncomingMessage> =>
          new Promise((resolve, reject) => {
            const headers = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` };
            const asked = request(url + UPLOAD, { method: 'POST', agent, headers }, (reply) => {
              reply.resume().on('end', () => resolve(reply));
            });
            asked.on('error', reject).end(formOf(partOf([fileHead('trees.pdf')], pdfWith([text]))));
          });
        // The service has loaded its modules, and the connection is open.
        expect((await sent('Oaks grow.')).statusCode).to.equal(200);
        limitFiles(child, lowestFree(child));
        const refused = await sent('Elms grow.');
        expect(refused.statusCode).to.equal(503);
        expect(Number(refused.headers['retry-after'])).to.be.greaterThan(0);
        limitFiles(child, 1_024);
        expect((await sent('Elms grow.')).statusCode).to.equal(200);
        child.signal('SIGTERM');
        expect((await child.exit).code).to.equal(0);
      } finally {
        agent.destroy();
        await child.kill();
        dir.remove();
      }
    });
  });

/** The descriptor that the next opened file of a process would get. */
function lowestFree({ pid }: Child): number {
  const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let free = 0;
  while (taken.has(free)) free += 1;
  return free;
}

function limitFiles({ pid }: Child, most: number): void {
  expect(spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${most}:`]).status).to.equal(0);
}

if (existsSync('/proc/self/limits')) define();
else process.stderr.write('Not tried here: what the limit of open files does (there is no /proc)\n');

if (spawnSync('prlimit', ['--version']).status === 0) defineUpload();
else process.stderr.write('Not tried here: what an upload does when no file can be opened (there is no prlimit)\n');
