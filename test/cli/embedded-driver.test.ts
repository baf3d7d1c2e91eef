import { existsSync } from 'node:fs';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { offlineModel } from '../../src/models/offline.js';
import type { CouncilBench } from '../support/council-command.js';
import { COUNCIL, councilBench, resultIn } from '../support/council-command.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { eventStoreFor, onEmbeddedLog } from '../support/test-event-store.js';

/** A model that never answers. */
const NEVER = offlineModel({ system: nodeSystem(), latencyMs: 60_000 });
const TOPIC = 'Should our town build a public sauna?';

describe('council run in this process', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(() => bench.clear());

  it('prints the final draft alone on standard output, and a plain line for each node on standard error', async () => {
    const drafted = await bench.start([TOPIC], { input: '' }).exit;
    const result = resultIn(await bench.run([TOPIC, '--json']));
    expect(drafted.code).to.equal(0);
    expect(drafted.stdout).to.equal(`${result.final_draft ?? ''}\n`);
    const steps = [...drafted.stderr.matchAll(/^ +\d+\.\d s {2}(.*)$/gm)].map(([, step]) => step);
    // On a server, steps that take no time may end before the command reads them.
    onEmbeddedLog(() =>
      // A critic begins without a score: its draft has none yet.
      expect(steps).to.deep.equal([
        ...['master_agent', 'critic_agent  iteration 1', 'master_agent  iteration 1  score 6'],
        ...['critic_agent  iteration 2', 'writer_agent  iteration 2  score 8'],
      ]),
    );
    expect(steps.at(-1)).to.match(/^writer_agent/);
    expect(drafted.stderr).to.match(/^Completed in .*: score 8, iterations 2, \d+ tokens in, \d+ out, \$0$/m);
    expect(drafted.stderr).to.not.match(/[\r\x1b]/);
  });

  it('prints one JSON object with --json', async () => {
    const ended = await bench.run([TOPIC, '--json']);
    expect(ended.code).to.equal(0);
    expect(resultIn(ended)).to.include({ status: 'completed', error: null, paused: null });
    expect(ended.stdout.trimEnd().split('\n')).to.have.lengthOf(1);
  });

  it('runs a blueprint with branches from a file', async () => {
    const ended = await bench.run([
      'A cache of sessions',
      '--blueprint',
      'schemas/examples/code-review.blueprint.json',
    ]);
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.include('A cache of sessions');
    expect(ended.stderr).to.include('editor').and.include('summary');
  });

  it('exits 1 without a draft when the run fails', async () => {
    const nodes = [{ id: 'critic', label: 'Critic', type: 'critic' }, { id: 'end' }];
    const edges = [{ source: 'critic', target: 'end', type: 'conditional', condition: 'score > 100' }];
    const file = bench.written('dead-end.json', JSON.stringify({ name: 'Dead end', nodes, edges }));
    const ended = await bench.run(['The sea', '--blueprint', file]);
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/^Failed after .*critic/m);
  });

  it('cancels the run on SIGINT, and unlocks the folder', async () => {
    const slow = bench.start([TOPIC, '--json'], { env: { OFFLINE_LATENCY_MS: '60000' } });
    await slow.waitForStderr(/master_agent/);
    slow.signal('SIGINT');
    const ended = await slow.exit;
    expect(ended.code).to.equal(1);
    expect(resultIn(ended)).to.include({ status: 'failed', error: 'Cancelled by the user' });
    expect(await bench.run([TOPIC])).to.include({ code: 0 });
  });

  it('refuses a data directory in use with one line that names its process and --url', async () => {
    const service = await startService({ dataDir: bench.dataDir });
    try {
      const ended = await bench.run([TOPIC]);
      expect(ended).to.include({ code: 5, stdout: '' });
      expect(ended.stderr.trimEnd().split('\n')).to.have.lengthOf(1);
      expect(ended.stderr).to.include(`process ${process.pid}`).and.include('--url');
    } finally {
      await service.stop();
    }
  });

  if (existsSync('/dev/full'))
    it('exits 1 and names the run when its draft cannot be written', async () => {
      const words = ['-c', '"$0" "$@" > /dev/full', process.execPath, ...run([TOPIC])];
      const ended = await bench.program('sh', words).exit;
      expect(ended.code).to.equal(1);
      const runId = /^Run (\S+) here/m.exec(ended.stderr)?.[1] ?? '';
      expect(ended.stderr).to.include(`Cannot write the result of run "${runId}": ENOSPC`);
    });

  it('exits 0 for a completed run whose draft has no reader', async () => {
    const ended = await bench.program('sh', [
      '-c',
      '{ "$0" "$@"; echo "code $?" >&2; } | true',
      process.execPath,
      ...run([TOPIC]),
    ]).exit;
    expect(ended.stderr).to.match(/^code 0$/m);
  });

  it('replaces control characters in an error message', async () => {
    const { code, stderr } = await bench.run(['x', '--blueprint', '\x1b[31m\x9b']);
    expect(code).to.equal(2);
    expect(stderr)
      .to.include('\uFFFD[31m\uFFFD')
      .and.not.match(/[\x1b\x9b]/);
  });

  it('reports unfinished runs, and leaves them for the service', async () => {
    const service = await startService({ dataDir: bench.dataDir, model: NEVER });
    const rest = restClient(service.url);
    const runId = await rest.start();
    await service.stop();
    const ended = await bench.run([TOPIC]);
    expect(ended.code, ended.stderr).to.equal(0);
    // On a shared log, an unfinished run may belong to another instance.
    if (eventStoreFor(bench.dataDir) === null)
      expect(ended.stderr).to.include('DATA_DIR holds 1 unfinished run. Continue with `council serve`');
    const later = await startService({ dataDir: bench.dataDir });
    try {
      expect((await restClient(later.url).until(runId, isOver)).status).to.equal('completed');
    } finally {
      await later.stop();
    }
  });
});

function run(words: readonly string[]): readonly string[] {
  return [COUNCIL, 'run', ...words];
}
