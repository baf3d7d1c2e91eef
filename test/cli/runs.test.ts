import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandHere } from '../support/council-command.js';
import { councilService } from '../support/council-service.js';
import { isOver } from '../support/rest-client.js';
import { COMMANDS } from '../support/wordy-model.js';

const SCHEMA = new URL('../../../schemas/history-query.json', import.meta.url);

describe('council runs', () => {
  const council = councilService();
  let oaks: string;
  let elms: string;

  before(async () => {
    const { rest } = council;
    const nodes = [{ id: 'poet' }];
    expect((await rest.post('/api/councils/', { id: 'poem', name: 'Poem', nodes })).status).to.equal(201);
    oaks = await rest.start('Oaks,\nand "more"');
    await rest.until(oaks, isOver);
    const started = await rest.post('/api/councils/poem/run', { input_topic: 'Elms' });
    elms = rest.read(started, 202, 'run-start.json').run_id;
    await rest.until(elms, isOver);
  });

  const idsIn = (text: string): readonly string[] => text.match(/^[0-9a-f-]{36}/gm) ?? [];

  it('lists the runs of a service, the newest first, one line each', async () => {
    const { code, stdout, stderr } = await council.ask('runs');
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^RUN +CREATED +STATUS +SCORE +COST +COUNCIL +TOPIC$/m);
    expect(stdout).to.match(/^\S{36} {2}\S+Z {2}completed {2}8 +\$0 +built-in +Oaks, and "more"$/m);
    expect(stdout).to.match(/^\S{36} {2}\S+Z {2}completed {2}- +\$0 +poem +Elms$/m);
    expect(idsIn(stdout)).to.deep.equal([elms, oaks]);
  });

  it('lists the runs that pass all filters, in an order, and says if there are more', async () => {
    const listed = async (...words: readonly string[]) => idsIn((await council.ask('runs', ...words)).stdout);
    expect(await listed('--sort', 'created_at')).to.deep.equal([oaks, elms]);
    expect(await listed('--blueprint', 'poem')).to.deep.equal([elms]);
    expect(await listed('--built-in', '--min-score', '8', '--status', 'completed')).to.deep.equal([oaks]);
    expect(await listed('--outcome', 'completed', '--blueprint', 'poem')).to.deep.equal([elms]);
    expect(await listed('--outcome', 'rejected')).to.deep.equal([]);
    expect(await listed('--max-score', '7.5')).to.deep.equal([]);
    expect(await listed('--q', 'oaks', '--from', '2020-01-01', '--trial', 'no')).to.deep.equal([oaks]);
    expect(await listed('--to', '2020-01-01')).to.deep.equal([]);
    expect(await listed('--actor', 'nobody')).to.deep.equal([]);
    expect(await listed('--parent', oaks)).to.deep.equal([]);
    expect(await listed('--parent-run', oaks)).to.deep.equal([]);
    expect(await listed('--children', '--q', 'oaks')).to.deep.equal([oaks]);
    const first = await council.ask('runs', '--limit', '1');
    expect(idsIn(first.stdout)).to.deep.equal([elms]);
    expect(first.stderr).to.equal('There are more runs: --limit N lists more, --json and --csv export all\n');
    expect((await council.ask('runs', '--limit', '2')).stderr).to.equal('');
    expect((await council.ask('runs', '--status', 'pending')).stderr).to.equal('No run passes the filters\n');
  });

  it('has an option for each filter of the service', async () => {
    const query = JSON.parse(readFileSync(SCHEMA, 'utf8')) as { readonly properties: object };
    const names = Object.keys(query.properties).filter((name) => !['offset', 'cursor', 'count'].includes(name));
    const options: Readonly<Record<string, string>> = { blueprint_id: 'blueprint' };
    const { stdout } = await council.ask('runs', '--help');
    for (const name of names) expect(stdout).to.include(`--${options[name] ?? name.replace('_', '-')} `);
  });

  it('exports the runs that pass the filters as lines of JSON or as a table, also into a file', async () => {
    const { rest, bench } = council;
    const exported = async (query: string): Promise<string> => (await rest.get(`/api/runs/export?${query}`)).text;
    const json = await council.ask('runs', '--json', '--built-in');
    expect(json.stdout).to.equal(await exported('format=ndjson&built_in=1'));
    const csv = await council.ask('runs', '--csv', '--sort', 'created_at');
    expect(csv.stdout).to.equal(await exported('format=csv&sort=created_at'));
    const file = join(bench.path, 'runs.csv');
    expect(await council.ask('runs', '--csv', '--out', file)).to.deep.include({ code: 0, stdout: '' });
    expect(readFileSync(file, 'utf8')).to.equal(await exported('format=csv'));
  });

  it('prints nothing on a terminal that controls it, in lines that fit it', async () => {
    const { rest, service } = council;
    await rest.until(await rest.start(`Palms ${COMMANDS} ${'long '.repeat(50)}`), isOver);
    for (const format of [[], ['--json'], ['--csv']]) {
      let shown = '';
      const write = (text: string | Uint8Array, done: () => void): void => {
        shown += String(text);
        done();
      };
      const stdout = { isTTY: true, columns: 120, write };
      await commandHere(['runs', '--url', service.url, '--q', 'palms', ...format], {}, { stdout });
      expect(shown, format[0])
        .to.include('Palms')
        .and.not.match(/[^\P{Cc}\n]|[\u202E\u2066]/u);
      if (format.length === 0) for (const line of shown.split('\n')) expect(line.length).to.be.at.most(120);
    }
  });

  it('exits with 2 for a filter or an option that it cannot use', async () => {
    for (const [words, told] of [
      [['--status', 'done'], 'status'],
      [['--min-score', 'x'], 'min_score'],
      [['--from', 'soon'], 'from'],
      [['--sort', 'size'], 'sort'],
      [['--trial', '2'], '--trial takes yes or no'],
      [['--limit', '0'], '--limit takes a number from 1'],
      [['--json', '--csv'], '--json and --csv'],
      [['--csv', '--limit', '9'], '--limit is for the list'],
      [['--out', 'x'], '--out needs --json or --csv'],
    ] as const) {
      const { code, stderr } = await council.ask('runs', ...words);
      expect([words, code]).to.deep.equal([words, 2]);
      expect(stderr).to.include(told);
    }
  });
});
