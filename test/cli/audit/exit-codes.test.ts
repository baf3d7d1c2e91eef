import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ChildExit } from '../../support/child.js';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { damageEvent } from '../../support/damaged-log.js';
import { recordOf } from '../../support/record-of.js';
import type { Fate } from '../spoilt-service.js';
import { spoiltService } from '../spoilt-service.js';
import { isOver, NO_RUN, restClient } from '../../support/rest-client.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';

const ALL = ['events', 'tail', 'state', 'show', 'verify', 'export'] as const;

describe('The exit code of the commands on the record of a run', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let runId: string;
  /** A folder with a run whose record was changed outside the service. */
  let corruptDir: string;
  let corruptId: string;

  before(async () => {
    bench = councilBench();
    corruptDir = join(bench.path, 'damaged');
    const spoilt = await startService({ dataDir: corruptDir, eventStore: null });
    const rest = restClient(spoilt.url);
    corruptId = await rest.start('Trees');
    await rest.until(corruptId, isOver);
    const [, , , , written] = await recordOf(spoilt.context.log, corruptId);
    await spoilt.stop();
    damageEvent(corruptDir, written?.id ?? '', ['In short', 'In brief']);
    service = await startService({ dataDir: join(bench.path, 'service'), eventStore: null });
    runId = await restClient(service.url).start('Trees');
    await restClient(service.url).until(runId, isOver);
  });

  after(async () => {
    // Its folder is in that of the bench.
    await service.stop();
    await bench.clear();
  });

  const council = (...words: readonly string[]): Promise<ChildExit> => bench.council(words);
  const expectOneLine = ({ stdout, stderr }: ChildExit, told: RegExp): void => {
    expect(stdout).to.equal('');
    expect(stderr.trimEnd().split('\n'), stderr).to.have.lengthOf(1);
    expect(stderr).to.match(told);
  };

  it('is 2 for wrong usage, with the usage', async () => {
    const faults: readonly (readonly [readonly string[], string])[] = [
      [['events'], 'A run is missing'],
      [['state', runId, 'x'], 'Too many words'],
      [['state', runId, '--at', '-1'], '--at'],
      [['state', runId, '--at', '1.5'], '--at takes the number of an event'],
      [['events', runId, '--head', '0'], "Unknown option '--head'"],
      [['diff', runId], '--from is missing'],
      [['verify', runId, '--head', 'abc'], '--head takes 64 hexadecimal digits'],
      [['fork', runId, '--at', '3'], 'A fork needs --url'],
      [['fork', runId, '--url', service.url], '--at is missing'],
      [['fork', runId, '--at', '3', '--url', service.url, '--set', 'critic_score=eight'], 'takes JSON'],
      [['fork', runId, '--at', '3', '--url', service.url, '--model', 'writer_agent'], '--model takes NODE=MODEL'],
      [['events', runId, '--url', 'ftp://x'], '--url takes'],
      [['tail', runId, '--loud'], '--loud'],
    ];
    for (const [words, told] of faults) {
      const ended = await council(...words);
      expect(ended, ended.stderr).to.include({ code: 2, stdout: '' });
      expect(ended.stderr).to.include(told).and.include(`Usage: council ${words[0]} RUN`);
    }
  });

  it('is 2 for a fork that the service refuses', async () => {
    for (const [words, told] of [
      [['--at', '13'], /the run is completed there/],
      [['--at', '3', '--model', 'nobody=x'], /no such node/],
      [['--at', '3', '--set', 'mood="good"'], /mood/],
    ] as const) {
      const ended = await council('fork', runId, '--url', service.url, ...words);
      expect(ended.code, ended.stderr).to.equal(2);
      expectOneLine(ended, told);
    }
  });

  it('is 0 for --help', async () => {
    const ended = await council('verify', '--help');
    expect(ended).to.include({ code: 0, stderr: '' });
    expect(ended.stdout).to.include('Exit code: 0 consistent, 1 not consistent, 2 could not tell');
  });

  it('is 3 if no service answers, for verify 2', async () => {
    // Closes each connection, so that fetch cannot reuse one after the server has stopped.
    const silent = createServer((_, answer) =>
      answer.writeHead(503, { Connection: 'close' }).end('{"detail":"Not now"}'),
    );
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const busy = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    for (const command of ALL) {
      const ended = await council(command, runId, '--url', busy);
      expect(ended.code, command).to.equal(command === 'verify' ? 2 : 3);
      expectOneLine(ended, /^Not now$/m);
    }
    await new Promise((resolve) => silent.close(resolve));
    for (const command of ALL) {
      const ended = await council(command, runId, '--url', busy);
      expect(ended.code, command).to.equal(command === 'verify' ? 2 : 3);
      expectOneLine(ended, /^Cannot reach the service at http:\S+: is it running\?$/m);
    }
  });

  it('is 4 for an unknown run or event, for verify 2', async () => {
    for (const command of ALL) {
      const ended = await council(command, NO_RUN, '--url', service.url);
      expect(ended.code, command).to.equal(command === 'verify' ? 2 : 4);
      expectOneLine(ended, new RegExp(`^Cannot find run "${NO_RUN}"$`, 'm'));
      // For verify such a word is a file.
      if (command === 'verify') continue;
      const elsewhere = await council(command, '..', '--url', service.url);
      expect(elsewhere.code, command).to.equal(4);
      expectOneLine(elsewhere, /^Cannot find run "\.\."$/m);
    }
    const beyond = await council('state', runId, '--at', '99', '--url', service.url);
    expect(beyond.code).to.equal(4);
    expectOneLine(beyond, /^Cannot find event 99 of run "\S+": its last one is event 13$/m);
    const unknownOther = await council('diff', runId, NO_RUN, '--url', service.url);
    expect(unknownOther.code).to.equal(4);
  });

  it('is 1 if the server is not a council service, even if its 404 contains the id of the run', async () => {
    const other = createServer((_, answer) =>
      answer.writeHead(404).end(JSON.stringify({ detail: `No page ${runId}` })),
    );
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const ended = await council('state', runId, '--url', url);
    await new Promise((resolve) => other.close(resolve));
    expect(ended.code).to.equal(1);
    expectOneLine(ended, /^No page/);
  });

  it('is 5 if a service runs on the folder or the log is missing, for verify 2', async () => {
    const empty = join(bench.path, 'empty');
    const strange = join(bench.path, 'strange');
    for (const folder of [empty, strange]) mkdirSync(folder);
    writeFileSync(join(strange, 'log.sqlite'), 'This is no database, and longer than nothing.');
    const held = new RegExp(
      `^Cannot use the data directory ".*": process ${process.pid} on \\S+ .* holds it; ask`,
      'm',
    );
    for (const [dataDir, told] of [
      [service.dataDir, held],
      [empty, /^Cannot read the event log ".*log\.sqlite": there is no such file; ask/m],
      [strange, /^Cannot read the event log ".*": file is not a database; ask/m],
      [join(bench.path, 'nowhere'), /there is no such file/],
    ] as const) {
      for (const command of ALL) {
        const ended = await bench.council([command, runId], { env: { DATA_DIR: dataDir } });
        expect(ended.code, ended.stderr).to.equal(command === 'verify' ? 2 : 5);
        expectOneLine(ended, told);
      }
    }
    expect(readdirSync(empty)).to.deep.equal([]);
    const server = { DATA_DIR: corruptDir, EVENTSTORE_URL: 'esdb://127.0.0.1:2113?tls=false' };
    const elsewhere = await bench.council(['events', corruptId], { env: server });
    expect(elsewhere.code).to.equal(5);
    expectOneLine(elsewhere, /the server that EVENTSTORE_URL names keeps the record/);
  });

  it('is 1 for a corrupt record, and verify shows the corrupt event', async () => {
    const env = { DATA_DIR: corruptDir };
    for (const command of ALL) {
      const ended = await bench.council([command, corruptId], { env });
      expect(ended.code, command).to.equal(1);
      if (command === 'verify') {
        expect(ended.stdout).to.match(/^not consistent: event 4: its hash does not follow/);
        expect(ended.stdout).to.match(/^4 consistent events before it$/m);
      } else expect(ended.stderr).to.match(/^The record of run "\S+" is damaged at seq 4: its hash does not follow/);
    }
    const out = join(bench.path, 'damaged.ndjson');
    expect(await bench.council(['export', corruptId, '--out', out], { env })).to.include({ code: 1 });
    expect(readdirSync(bench.path).filter((name) => name.includes('damaged.ndjson'))).to.deep.equal([]);
  });

  it('is 1 for a corrupt record at a service', async () => {
    const spoilt = await startService({ dataDir: corruptDir, eventStore: null });
    for (const command of ALL) {
      const ended = await council(command, corruptId, '--url', spoilt.url);
      expect(ended.code, `${command}: ${ended.stderr}`).to.equal(1);
    }
    await spoilt.stop();
  });

  it('is 1 if the output cannot be written', async () => {
    const words = ['export', runId, '--url', service.url];
    const lost = await council(...words, '--out', join(bench.path, 'no', 'such.ndjson'));
    expect(lost.code).to.equal(1);
    expectOneLine(lost, /^Cannot write ".*such\.ndjson": ENOENT/);
    for (const place of ['/dev/stdout', bench.path]) {
      // A process of its own, because /dev/stdout is its standard output.
      const strange = await bench.program(process.execPath, [COUNCIL, ...words, '--out', place], { input: '' }).exit;
      expect(strange.code).to.equal(1);
      expectOneLine(strange, /^Cannot write ".*": it exists and is not a regular file$/m);
    }
    const shell = (line: string) => bench.program('/bin/sh', ['-c', line, process.execPath, COUNCIL, ...words]).exit;
    const full = await shell('"$0" "$@" > /dev/full; echo "exit $?"');
    expect(full.stdout).to.equal('exit 1\n');
    expect(full.stderr).to.match(/^Cannot write the output: .*ENOSPC/);
  });

  it('is 2 of verify for an unreadable or an empty file', async () => {
    const missing = await council('verify', join(bench.path, 'missing.ndjson'));
    expect(missing.code).to.equal(2);
    expectOneLine(missing, /^Cannot read ".*missing\.ndjson": ENOENT/);
    expect(await council('verify', bench.written('empty.ndjson', ''))).to.include({ code: 2 });
    expect(await council('verify', bench.path)).to.include({ code: 2, stdout: '' });
  });

  it('is the result of verify also without a reader', async () => {
    for (const [dataDir, subject, code] of [
      [corruptDir, corruptId, 1],
      [corruptDir, NO_RUN, 2],
    ] as const) {
      const line = '{ "$0" "$@"; echo "exit $?" >&2; } | true';
      const words = ['-c', line, process.execPath, COUNCIL, 'verify', subject];
      const ended = await bench.program('/bin/sh', words, { env: { DATA_DIR: dataDir } }).exit;
      expect(ended.stderr).to.include(`exit ${code}\n`);
    }
  });

  it('is 1 for a fork that may have started, and 3 for a fork that has not', async () => {
    const fork = async (fate: Fate) => {
      const spoilt = await spoiltService(service.url, ({ method }) => (method === 'POST' ? fate : 'pass'));
      try {
        return await council('fork', runId, '--at', '3', '--url', spoilt.url);
      } finally {
        await spoilt.stop();
      }
    };
    const lost = await fork('lose');
    expect(lost.code).to.equal(1);
    expectOneLine(lost, /^Cannot tell whether the fork of run "\S+" has started: Cannot reach/);
    const doubtful = await fork('doubt');
    expect(doubtful.code).to.equal(1);
    expectOneLine(doubtful, /^Cannot tell whether the fork of run "\S+" has started: Not now/);
    const refused = await fork('refuse');
    expect(refused.code).to.equal(3);
    expectOneLine(refused, /^Not now$/m);
  });

  it('is 130 after Ctrl-C', async () => {
    const hanging = createServer(() => undefined);
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    const requested = new Promise((resolve) => hanging.on('request', resolve));
    const out = join(bench.path, 'begun', 'run.ndjson');
    mkdirSync(join(bench.path, 'begun'));
    const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
    const waiting = bench.program(process.execPath, [COUNCIL, 'export', runId, '--out', out, '--url', url]);
    await requested;
    waiting.signal('SIGINT');
    expect(await waiting.exit).to.include({ code: 130, stdout: '', stderr: '' });
    expect(readdirSync(join(bench.path, 'begun'))).to.deep.equal([]);
    hanging.closeAllConnections();
    hanging.close();
  });
});
