import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import { offlineModel } from '../../src/models/offline.js';
import type { ChildExit } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench, resultIn } from '../support/council-command.js';
import { factsOf, recordOf } from '../support/record-of.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { spoiltService, type SpoiltService } from './spoilt-service.js';

/** Far longer than a command that waits for nothing needs to end, in milliseconds. */
const SOON_MS = 60_000;

const TOPIC = 'Should our town build a public sauna?';

describe('council run --url', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let spoilt: SpoiltService | undefined;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(async () => {
    // Stops the service first, because a folder that it still writes to cannot be removed.
    await spoilt?.stop();
    spoilt = undefined;
    await service.stop();
    await bench.clear();
  });

  it('prints the same as a run in this process', async () => {
    const config = readConfig({});
    service = await startService({ model: routedModel(config.providers, { ...config, system: nodeSystem() }) });
    const council = (name: string, more: object): readonly string[] => [
      '--blueprint',
      bench.written(`${name}.json`, JSON.stringify({ name, ...more })),
    ];
    const poet = [{ id: 'poet', maxOutputTokens: 100 }];
    const members = [{}, {}, {}];
    const panel = [
      { id: 'panel', type: 'panel', members },
      { id: 'jury', type: 'critic', members },
    ];
    const pair = [
      { id: 'poet', maxOutputTokens: 200 },
      { id: 'reader', maxOutputTokens: 200, model: 'anthropic/x', fallbacks: ['offline'] },
    ];
    const editor = bench.written('editor.sh', 'printf "The sea is deep.\\n" > "$1"\n');
    const kinds: readonly (readonly [words: readonly string[], input?: string])[] = [
      [['--json']],
      [['--budget-tokens', '100', '--budget-usd', '0.50', '--on-exceeded', 'fail', '--json']],
      [['--budget-tokens', '100'], 'a\nedit\napprove tokens=101\napprove tokens=90000 It is worth it.\n'],
      [['--budget-tokens', '100', '--json'], 'reject\n'],
      [['--budget-tokens', '100', '--json'], ''],
      [[...council('fails', { nodes: poet, budget: { tokens: 100, on_exceeded: 'fail' } }), '--json']],
      [[...council('panel', { nodes: panel, edges: edgesOf('panel', 'jury') }), '--json']],
      [
        council('finishes', {
          nodes: pair,
          edges: edgesOf('poet', 'reader'),
          budget: { tokens: 450, on_exceeded: 'finish' },
        }),
      ],
      [['--god', ...council('pair', { nodes: pair, edges: edgesOf('poet', 'reader') })], 'approve Go on.\nedit\n'],
      [['--god', '--blueprint', bench.pair(), '--json'], 'what?\napprove\nreject No.\n'],
    ];
    for (const [words, input = ''] of kinds) {
      const given = { env: { EDITOR: `sh ${editor}` }, input };
      const here = await bench.run([TOPIC, ...words], given);
      const remote = await bench.run([TOPIC, ...words, '--url', `${service.url}/`], given);
      expect([here.stderr, remote.stderr].map((text) => /^Run \S+ (.*)$/m.exec(text)?.[1])).to.deep.equal([
        ...['here, on the offline model', `at ${service.url}`],
      ]);
      expect(comparable(remote), words.join(' ')).to.deep.equal(comparable(here));
      // On a server, steps that take no time may end before the command reads them.
      onEmbeddedLog(() => expect(stepsIn(remote), words.join(' ')).to.deep.equal(stepsIn(here)));
    }
  });

  it('runs a blueprint in God Mode, which the service does not keep', async () => {
    service = await startService();
    const editor = bench.written('editor.sh', 'printf "The sea is deep.\\n" > "$1"\n');
    const words = ['The sea', '--god', '--blueprint', bench.pair(), '--url', service.url];
    const ended = await bench.run(words, { env: { EDITOR: `sh ${editor}` }, input: 'approve Go on.\nedit\n' });
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.include('The sea is deep.');
    const [run] = await service.context.queries.list({ limit: 1, offset: 0 });
    const decided = factsOf(await recordOf(service.context.log, run?.id ?? ''), 'GateDecided');
    expect(decided.map(({ comment }) => comment)).to.deep.equal(['Go on.', null]);
    // The decision says which draft the terminal has shown, and when: before the answer, after the pause.
    const shown = decided.map(({ shownDraftHash }) => shownDraftHash);
    expect(decided.map(({ review }) => review?.draftSha256)).to.deep.equal(shown);
    expect(shown)
      .to.deep.equal([null, shown.at(-1)])
      .and.not.deep.equal([null, null]);
    for (const { review } of decided) expect(review?.openedAt).to.match(/^\d{4}-.*Z$/);
    expect(JSON.parse((await restClient(service.url).get('/api/councils/')).text)).to.deep.equal([]);
  });

  it('cancels the run at the service on SIGINT', async () => {
    service = await startService();
    const waiting = bench.start(['The sea', '--god', '--json', '--blueprint', bench.pair(), '--url', service.url]);
    await waiting.waitForStderr(/reject or edit/);
    waiting.signal('SIGINT');
    const ended = await waiting.exit;
    expect(ended.code).to.equal(1);
    const { run_id: runId } = resultIn(ended);
    expect(await restClient(service.url).poll(runId)).to.include({ error: 'Cancelled by the user' });
  });

  it('continues when the service restarts while the run is paused', async () => {
    const dataDir = join(bench.path, 'service');
    service = await startService({ dataDir });
    const waiting = bench.start(['The sea', '--god', '--blueprint', bench.pair(), '--url', service.url]);
    await waiting.waitForStderr(/reject or edit/);
    await service.stop();
    service = await startService({ dataDir, port: Number(new URL(service.url).port) });
    waiting.writeInput('approve\napprove\n');
    const ended = await waiting.exit;
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stderr).to.include('Paused before reader');
  });

  it('exits 3 with one line when no service runs at the address', async () => {
    service = await startService();
    await service.stop();
    const ended = await bench.run([TOPIC, '--url', service.url]);
    expect(ended).to.include({ code: 3, stdout: '' });
    expect(ended.stderr).to.equal(
      `Cannot reach the service at ${service.url}: is it running? Start it with council serve, or leave out --url to run here\n`,
    );
  });

  it('says that the connection is lost, and ends soon if it cannot cancel the run', async () => {
    service = await startService();
    const waiting = bench.start(['The sea', '--god', '--blueprint', bench.pair(), '--url', service.url]);
    await waiting.waitForStderr(/reject or edit/);
    waiting.writeInput('approve\n');
    await waiting.waitForStderr(/before reader[^]*reject or edit/);
    await service.stop();
    waiting.writeInput('approve\n');
    await waiting.waitForStderr(/Connection to the service lost/);
    const cancelledMs = Date.now();
    waiting.signal('SIGINT');
    const ended = await waiting.exit;
    expect(Date.now() - cancelledMs).to.be.lessThan(SOON_MS);
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/^Cannot cancel run "\S+", which may continue: Cannot reach/m);
    expect(ended.stderr.match(/lost, trying again/g)).to.have.lengthOf(1);
  });

  it('ends soon on SIGTERM when the service does not answer', async () => {
    service = await startService({ model: offlineModel({ latencyMs: 60_000, system: nodeSystem() }) });
    spoilt = await spoiltService(service.url, ({ url }) => (url?.endsWith('/cancel') === true ? 'hang' : 'pass'));
    const silent = bench.start([TOPIC, '--url', spoilt.url]);
    await silent.waitForStderr(/master_agent/);
    const cancelledMs = Date.now();
    silent.signal('SIGTERM');
    const ended = await silent.exit;
    expect(Date.now() - cancelledMs).to.be.lessThan(SOON_MS);
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/^Cannot cancel run "\S+", which may continue: /m);
  });

  it('completes a run whose blueprint cannot be deleted, and names the blueprint', async () => {
    service = await startService();
    spoilt = await spoiltService(service.url, ({ method }) => (method === 'DELETE' ? 'refuse' : 'pass'));
    const words = [TOPIC, '--json', '--blueprint', bench.pair(), '--url', spoilt.url];
    const ended = await bench.run(words);
    expect(ended.code, ended.stderr).to.equal(0);
    const id = /^Warning: cannot delete blueprint "(\S+)" at the service: Not now$/m.exec(ended.stderr)?.[1] ?? '';
    expect((await restClient(service.url).get(`/api/councils/${id}`)).status).to.equal(200);
  });

  it('starts one run when the answer to the start is lost', async () => {
    service = await startService();
    let isLost = false;
    spoilt = await spoiltService(service.url, ({ url }) => {
      if (isLost || url !== '/api/councils/run') return 'pass';
      isLost = true;
      return 'lose';
    });
    const ended = await bench.run([TOPIC, '--json', '--url', spoilt.url]);
    expect(ended.code, ended.stderr).to.equal(0);
    const { run_id: runId } = resultIn(ended);
    expect(ended.stderr).to.include(`Run ${runId} at`).and.include('Connection to the service lost, trying again');
    const history: unknown = JSON.parse((await restClient(service.url).get('/api/runs/')).text);
    expect(history).to.have.lengthOf(1);
  });
});

function edgesOf(...nodes: readonly string[]): readonly object[] {
  return nodes.slice(1).map((target, at) => ({ source: nodes[at], target }));
}

/** What a command prints but its steps, without what differs between two runs: place, ids, times, who refuses a decision. */
function comparable({ code, stdout, stderr }: ChildExit): object {
  const plain = (text: string): string =>
    text
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
      .replaceAll(STEPS, '')
      .replace(/(?<= in| after) \d+\.\d s/, '')
      .replace(/^(Run ID) .*$/m, '$1')
      .replace(/^(body\.budget\.tokens|Cannot decide on run "ID"): /m, '');
  return { code, stdout: plain(stdout), stderr: plain(stderr) };
}

/** The lines of its steps: the node, the iteration and the score. */
const STEPS = /^ *[\d.]+ s {2}(.*)\n/gm;

function stepsIn({ stderr }: ChildExit): readonly (string | undefined)[] {
  return [...stderr.matchAll(STEPS)].map(([, step]) => step);
}
