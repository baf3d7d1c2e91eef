import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { COMMANDS } from '../../src/cli/command-table.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';

/** The version in package.json. */
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};

describe('council run with wrong words or settings', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(() => bench.clear());

  it('exits 2 and shows the usage for wrong words', async () => {
    const faults: readonly (readonly [readonly string[], string])[] = [
      [[], 'A topic is missing'],
      [['one', 'two'], 'Put the topic in quotes'],
      [['--loud', 'x'], '--loud'],
      [['x', '--god'], '--god needs --blueprint'],
      [['x', '--url', 'ftp://x'], '--url takes'],
    ];
    const all = await Promise.all(faults.map(([words]) => bench.run(words)));
    all.forEach((ended, index) => {
      expect(ended, ended.stderr).to.include({ code: 2, stdout: '' });
      expect(ended.stderr)
        .to.include(faults[index]?.[1] ?? '')
        .and.include('Usage: council run');
    });
  });

  it('exits 2 with one line for a topic or a blueprint that the service refuses', async () => {
    const lost = '{"name":"x","nodes":[{"id":"a"}],"edges":[{"source":"a","target":"b"}]}';
    const faults: readonly (readonly [readonly string[], RegExp])[] = [
      [[''], /Cannot use the topic: .*at least 1 character/],
      [['x', '--blueprint', '/no/such/file'], /Cannot use blueprint \/no\/such\/file: there is no such file/],
      [['x', '--blueprint', bench.written('text.json', 'Hello')], /text.json: it should be JSON, but cannot be parsed/],
      [['x', '--blueprint', bench.written('bare.json', '{"name":"x"}')], /nodes: Field required/],
      [['x', '--blueprint', bench.written('lost.json', lost)], /Cannot use blueprint .*: Edge "a->b" leads to "b"/],
    ];
    const all = await Promise.all(faults.map(([words]) => bench.run(words)));
    all.forEach((ended, index) => {
      expect(ended, ended.stderr).to.include({ code: 2, stdout: '' });
      expect(ended.stderr).to.match(faults[index]?.[1] ?? /^$/);
      expect(ended.stderr.trimEnd().split('\n')).to.have.lengthOf(1);
    });
  });

  it('exits 0 for help and version, and 2 for an unknown command', async () => {
    const ended = (...words: readonly string[]) => bench.command(words);
    for (const words of [['help'], ['--help'], ['-h']]) {
      const { code, stdout, stderr } = await ended(...words);
      expect([code, stderr]).to.deep.equal([0, '']);
      expect(stdout).to.match(/^ {2}council serve +starts the service$/m);
      for (const { name, does } of COMMANDS)
        expect(stdout).to.match(new RegExp(`^ {2}council ${name} .*  ${does}$`, 'm'));
    }
    for (const name of ['serve', 'migrate']) {
      const { code, stdout } = await ended(name, '--help');
      expect([code, stdout.split('\n')[0]]).to.deep.equal([0, `Usage: council ${name}`]);
    }
    expect(await ended('--version')).to.deep.include({ code: 0, stdout: `${version}\n`, stderr: '' });
    const wrong = await Promise.all([ended('sing'), ended('migrate', 'all'), ended()]);
    for (const { code, stdout } of wrong) expect([code, stdout]).to.deep.equal([2, '']);
    expect(wrong.map(({ stderr }) => stderr.split('\n')[0])).to.deep.equal([
      'There is no command "sing"',
      'council migrate takes no words',
      'A command is missing',
    ]);
  });

  it('names the address of an unreachable EVENTSTORE_URL without the password, and ends at Ctrl-C', async () => {
    const env = { EVENTSTORE_URL: 'esdb://admin:changeit@127.0.0.1:1?tls=false' };
    const started = bench.start(['x'], { env, input: '' });
    await started.waitForStderr(/cannot be reached.*127\.0\.0\.1:1/);
    started.signal('SIGINT');
    const { code, stderr } = await started.exit;
    expect(code).to.equal(1);
    expect(stderr).not.to.include('changeit');
  });

  it('exits 2 with one line for an unusable setting, and 0 for --help', async () => {
    const [setting, help] = await Promise.all([
      bench.start(['x'], { env: { MODEL_PROVIDER: 'oracle' }, input: '' }).exit,
      bench.run(['--help']),
    ]);
    expect(setting).to.include({ code: 2, stdout: '' });
    expect(setting.stderr.trimEnd().split('\n')).to.have.lengthOf(1);
    expect(help).to.include({ code: 0, stderr: '' });
    expect(help.stdout).to.include('--blueprint');
  });
});
