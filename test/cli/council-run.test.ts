import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { RunResult } from '../../src/generated/schemas.js';
import { openSchemas } from '../../src/http/schema.js';
import type { CouncilCommand, CouncilExit } from '../support/council-command.js';
import { council } from '../support/council-command.js';
import { restClient } from '../support/rest-client.js';
import { systemAmbient } from '../../src/ambient.js';
import { offlineModel } from '../../src/model/offline.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const TOPIC = 'Should our town build a public sauna?';
const CODE_REVIEW = 'schemas/examples/code-review.blueprint.json';

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

describe('council run', () => {
  let dir: TempDir;
  let commands: CouncilCommand[];

  beforeEach(() => {
    dir = tempDir();
    commands = [];
  });

  afterEach(async () => {
    for (const { child } of commands) child.kill('SIGKILL');
    await Promise.all(commands.map(({ ended }) => ended));
    dir.remove();
  });

  const start = (words: readonly string[], { env = {}, ...rest }: Given = {}): CouncilCommand => {
    const command = council(['run', ...words], { env: { DATA_DIR: join(dir.path, 'data'), ...env }, ...rest });
    commands.push(command);
    return command;
  };
  const run = (words: readonly string[], given: Given = {}): Promise<CouncilExit> =>
    start(words, { input: '', ...given }).ended;
  const written = (name: string, text: string): string => {
    const file = join(dir.path, name);
    writeFileSync(file, text);
    return file;
  };
  /** The poet writes, the reader improves: two pauses. */
  const pair = (): string =>
    written(
      'pair.json',
      JSON.stringify({
        name: 'Pair',
        nodes: [{ id: 'poet' }, { id: 'reader' }],
        edges: [{ source: 'poet', target: 'reader' }],
      }),
    );
  const resultIn = ({ stdout }: CouncilExit): RunResult => {
    const value: unknown = JSON.parse(stdout);
    if (openSchemas().validator('run-result.json')(value)) return value;
    throw new Error(`${stdout} is no run result`);
  };

  describe('in this process', () => {
    it('prints the final draft alone, and a plain line for each node on standard error', async () => {
      const drafted = await run([TOPIC]);
      const result = resultIn(await run([TOPIC, '--json']));
      expect(drafted.code).to.equal(0);
      expect(drafted.stdout).to.equal(`${result.final_draft ?? ''}\n`);
      const nodes = [...drafted.stderr.matchAll(/^ +\d+\.\d s {2}(\w+)/gm)].map((line) => line[1]);
      expect(nodes).to.deep.equal(['master_agent', 'critic_agent', 'master_agent', 'critic_agent', 'writer_agent']);
      expect(drafted.stderr)
        .to.match(/iteration 1 {2}score \d/)
        .and.match(/^Completed in .*: score 8, iterations 2$/m);
      expect(drafted.stderr).to.not.match(/[\r\x1b]/);
    });

    it('prints one JSON object with --json', async () => {
      const ended = await run([TOPIC, '--json']);
      expect(ended.code).to.equal(0);
      expect(resultIn(ended)).to.include({ status: 'completed', error: null, paused: null });
      expect(ended.stdout.trimEnd().split('\n')).to.have.lengthOf(1);
    });

    it('runs a blueprint from a file, branches and all', async () => {
      const ended = await run(['A cache of sessions', '--blueprint', CODE_REVIEW]);
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.include('A cache of sessions');
      expect(ended.stderr).to.include('editor').and.include('summary');
    });

    it('exits 1 without a draft when the run fails', async () => {
      const nodes = [{ id: 'critic', label: 'Critic', type: 'critic' }, { id: 'end' }];
      const edges = [{ source: 'critic', target: 'end', type: 'conditional', condition: 'score > 100' }];
      const file = written('dead-end.json', JSON.stringify({ name: 'Dead end', nodes, edges }));
      const ended = await run(['The sea', '--blueprint', file]);
      expect(ended).to.include({ code: 1, stdout: '' });
      expect(ended.stderr).to.match(/^Failed after .*critic/m);
    });

    it('cancels the run on SIGINT, and leaves the folder free', async () => {
      const slow = start([TOPIC, '--json'], { env: { OFFLINE_LATENCY_MS: '60000' } });
      await slow.untilTold(/master_agent/);
      slow.child.kill('SIGINT');
      const ended = await slow.ended;
      expect(ended.code).to.equal(1);
      expect(resultIn(ended)).to.include({ status: 'failed', error: 'Cancelled by the user' });
      expect(await run([TOPIC])).to.include({ code: 0 });
    });

    it('refuses a held data directory in one line that names the holder and --url', async () => {
      const service = await startService({ dataDir: join(dir.path, 'data') });
      const ended = await run([TOPIC]).finally(() => service.stop());
      expect(ended).to.include({ code: 1, stdout: '' });
      expect(ended.stderr.trimEnd().split('\n')).to.have.lengthOf(1);
      expect(ended.stderr).to.include(`process ${process.pid}`).and.include('--url');
    });
  });

  describe('in God Mode', () => {
    it('asks before each node and runs what is approved', async () => {
      const ended = await run(['The sea', '--god', '--blueprint', pair()], { input: 'what?\napprove\na\n' });
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stderr).to.include('Paused before poet').and.include('Paused before reader');
      expect(ended.stderr.match(/approve, reject or edit\?/g)).to.have.lengthOf(3);
    });

    it('fails the run that is rejected', async () => {
      const ended = await run(['The sea', '--god', '--blueprint', pair()], { input: 'reject\n' });
      expect(ended).to.include({ code: 1, stdout: '' });
      expect(ended.stderr).to.include('Rejected by the user in God Mode');
    });

    it('goes on with the draft as $EDITOR leaves it', async () => {
      const editor = written('editor.sh', 'echo noise; printf "The sea is deep.\\n" > "$1"\n');
      const env = { EDITOR: `sh ${editor}` };
      const words = ['The sea', '--god', '--blueprint', pair()];
      const ended = await run(words, { env, input: 'approve\nedit\n' });
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.include('The sea is deep.').and.not.include('noise');
    });

    it('asks again when the editor changes nothing or fails', async () => {
      const words = ['The sea', '--god', '--blueprint', pair()];
      const unchanged = await run(words, { env: { EDITOR: 'true' }, input: 'edit\nreject\n' });
      expect(unchanged.stderr).to.include('unchanged').and.include('Rejected');
      const failed = await run(words, { env: { EDITOR: 'false' }, input: 'edit\nreject\n' });
      expect(failed.stderr).to.include('The editor "false" failed').and.include('Rejected');
    });

    it('leaves the run paused when nobody answers', async () => {
      const ended = await run(['The sea', '--god', '--json', '--blueprint', pair()], { input: 'approve\n' });
      expect(ended.code).to.equal(1);
      expect(resultIn(ended)).to.deep.include({ status: 'paused', next_nodes: ['reader'] });
    });

    it('cancels a paused run on SIGINT', async () => {
      const waiting = start(['The sea', '--god', '--blueprint', pair()]);
      await waiting.untilTold(/reject or edit/);
      waiting.child.kill('SIGINT');
      expect(await waiting.ended).to.include({ code: 1, stdout: '' });
    });
  });

  describe('with --url', () => {
    let service: RunningService;

    afterEach(() => service.stop());

    it('prints what the service makes of the topic', async () => {
      // Slow enough for the command to have joined before the last node is active.
      service = await startService({ model: offlineModel({ latencyMs: 300, ambient: systemAmbient() }) });
      const remote = await run([TOPIC, '--url', `${service.url}/`]);
      expect(remote.code, remote.stderr).to.equal(0);
      expect(remote.stdout).to.equal((await run([TOPIC])).stdout);
      expect(remote.stderr).to.include(`at ${service.url}`).and.include('writer_agent');
    });

    it('runs a blueprint that the service does not keep, in God Mode', async () => {
      service = await startService();
      const editor = written('editor.sh', 'printf "The sea is deep.\\n" > "$1"\n');
      const words = ['The sea', '--god', '--blueprint', pair(), '--url', service.url];
      const ended = await run(words, { env: { EDITOR: `sh ${editor}` }, input: 'approve\nedit\n' });
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.include('The sea is deep.');
      expect(JSON.parse((await restClient(service.url).get('/api/councils/')).text)).to.deep.equal([]);
    });

    it('cancels the run there on SIGINT', async () => {
      service = await startService();
      const waiting = start(['The sea', '--god', '--json', '--blueprint', pair(), '--url', service.url]);
      await waiting.untilTold(/reject or edit/);
      waiting.child.kill('SIGINT');
      const ended = await waiting.ended;
      expect(ended.code).to.equal(1);
      const { run_id: runId } = resultIn(ended);
      expect(await restClient(service.url).poll(runId)).to.include({ error: 'Cancelled by the user' });
    });

    it('goes on when the service is restarted while the run is paused', async () => {
      const dataDir = join(dir.path, 'service');
      service = await startService({ dataDir });
      const waiting = start(['The sea', '--god', '--blueprint', pair(), '--url', service.url]);
      await waiting.untilTold(/reject or edit/);
      await service.stop();
      service = await startService({ dataDir, port: Number(new URL(service.url).port) });
      waiting.child.stdin?.end('approve\napprove\n');
      const ended = await waiting.ended;
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stderr).to.include('Paused before reader');
    });

    it('exits 1 in one line when nobody serves there', async () => {
      service = await startService();
      await service.stop();
      const ended = await run([TOPIC, '--url', service.url]);
      expect(ended).to.include({ code: 1, stdout: '' });
      expect(ended.stderr).to.equal(`Cannot reach the service at ${service.url}: is it running?\n`);
    });
  });

  describe('used wrongly', () => {
    it('exits 2 and tells the usage', async () => {
      const faults: readonly (readonly [readonly string[], RegExp])[] = [
        [[], /topic is missing/],
        [['one', 'two'], /in quotes/],
        [[''], /Cannot use the topic: .*at least 1 character/],
        [['--loud', 'x'], /--loud/],
        [['x', '--god'], /--god needs --blueprint/],
        [['x', '--url', 'ftp://x'], /--url takes/],
        [['x', '--blueprint', '/no/such/file'], /Cannot use blueprint \/no\/such\/file: ENOENT/],
        [['x', '--blueprint', written('text.json', 'Hello')], /Body should be JSON|cannot be parsed/],
        [['x', '--blueprint', written('bare.json', '{"name":"x"}')], /nodes: Field required/],
        [
          [
            'x',
            '--blueprint',
            written('lost.json', '{"name":"x","nodes":[{"id":"a"}],"edges":[{"source":"a","target":"b"}]}'),
          ],
          /Edge "a->b" leads to "b"/,
        ],
      ];
      const all = await Promise.all(faults.map(([words]) => run(words)));
      all.forEach((ended, index) => {
        expect(ended, ended.stderr).to.include({ code: 2, stdout: '' });
        expect(ended.stderr)
          .to.match(faults[index]?.[1] ?? /^$/)
          .and.include('Usage: council run');
      });
    });

    it('exits 2 in one line for an unusable setting, 0 for --help', async () => {
      const [setting, help] = await Promise.all([run(['x'], { env: { MODEL_PROVIDER: 'oracle' } }), run(['--help'])]);
      expect(setting).to.include({ code: 2, stdout: '' });
      expect(setting.stderr.trimEnd().split('\n')).to.have.lengthOf(1);
      expect(help).to.include({ code: 0, stderr: '' });
      expect(help.stdout).to.include('--blueprint');
    });
  });
});
