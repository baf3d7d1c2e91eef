import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { HistoryRecord } from '../../src/generated/schemas.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const pair = {
  name: 'Pair',
  nodes: [{ id: 'write' }, { id: 'polish' }],
  edges: [{ source: 'write', target: 'polish' }],
};

describe('The list of runs with trials, the built-in council and runs of a saved one', () => {
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;
  /** By kind of their start. */
  let ids: { readonly builtIn: string; readonly saved: string; readonly trial: string; readonly waiting: string };

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
    const blueprint = await council.blueprints.create({ id: 'pair', ...pair });
    const builtIn = await council.runs.start({ topic: '=2+3 forest, "quoted"\nline' });
    const saved = await council.runs.start({ topic: 'A forest', blueprint });
    const trial = await council.runs.tryBlueprint({ topic: 'A river', blueprint: pair });
    const waiting = await council.runs.start({ topic: 'A sea', blueprint, godMode: true });
    for (const { id } of [builtIn, saved, trial]) await rest.until(id, isOver);
    await rest.until(waiting.id, ({ status }) => status === 'paused');
    ids = { builtIn: builtIn.id, saved: saved.id, trial: trial.id, waiting: waiting.id };
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const list = async (query: string): Promise<readonly HistoryRecord[]> =>
    rest.read(await rest.get(`/api/runs/?${query}`), 200, 'history-list.json');
  const idsIn = async (query: string): Promise<readonly string[]> => (await list(query)).map(({ id }) => id);

  it('marks trials, and lists them alone or leaves them out', async () => {
    const all = await list('');
    expect(all.filter(({ trial }) => trial).map(({ id }) => id)).to.deep.equal([ids.trial]);
    expect(all).to.have.lengthOf(4);
    expect(await idsIn('trial=1')).to.deep.equal([ids.trial]);
    expect(await idsIn('trial=0')).to.deep.equal([ids.waiting, ids.saved, ids.builtIn]);
    expect(await idsIn('built_in=1')).to.deep.equal([ids.builtIn]);
    expect((await rest.get('/api/runs/?trial=0&count=1&limit=1')).headers.get('Total-Count')).to.equal('3');
    rest.problem(await rest.get('/api/runs/?trial=2'), 422);
  });

  it('keeps the mark in a fork of a trial', async () => {
    const fork = await council.run(ids.trial).fork({ at: 2 });
    expect((await fork.record()).trial).to.equal(true);
    await fork.result();
  });

  it('counts runs by status with the filters of the list', async () => {
    const counts = async (query: string) =>
      rest.read(await rest.get(`/api/runs/counts?${query}`), 200, 'run-counts.json');
    const none = { pending: 0, running: 0, paused: 0, failed: 0 };
    const completed = (runs: number) => ({
      completed: runs,
      outcomes: { completed: runs, failed: 0, rejected: 0, cancelled: 0 },
    });
    expect(await counts('trial=0')).to.deep.equal({ ...none, all: 3, paused: 1, ...completed(2) });
    expect(await counts('blueprint_id=pair')).to.deep.equal({ ...none, all: 2, paused: 1, ...completed(1) });
    expect(await counts('q=forest')).to.deep.equal({ ...none, all: 2, ...completed(2) });
    expect(await council.runs.counts({ builtIn: true })).to.deep.equal({ ...none, all: 1, ...completed(1) });
    rest.problem(await rest.get('/api/runs/counts?from=x'), 422);
  });

  it('sorts by cost, duration and iterations, page by page', async () => {
    const value = { cost: 'cost_usd', duration: 'duration_ms', iterations: 'iteration_count' } as const;
    for (const [sort, field] of Object.entries(value)) {
      for (const sign of ['', '-']) {
        const records = await list(`sort=${sign}${sort}`);
        const paged: HistoryRecord[] = [];
        for await (const each of council.runs.list({ sort: `${sign}${sort}` as 'cost', limit: 1 })) paged.push(each);
        expect(paged).to.deep.equal(records);
        const values = records.map((each) => (field === 'cost_usd' ? (each.usage?.cost_usd ?? null) : each[field]));
        const known = values.filter((each) => each !== null);
        expect(known).to.deep.equal(known.toSorted((a, b) => (sign === '' ? a - b : b - a)));
        expect(values.slice(0, known.length)).to.deep.equal(known);
      }
    }
  });

  it('shows where the searched words are', async () => {
    const [record] = await list('q=river');
    expect(record?.excerpts?.[0]).to.deep.equal({
      of: 'input_topic',
      parts: [
        { text: 'A ', found: false },
        { text: 'river', found: true },
      ],
    });
    expect((await list(''))[0]).not.to.have.property('excerpts');
  });

  it('exports a selection or all runs of a filter, as a table without formulas or as lines of JSON', async () => {
    const table = await rest.get(`/api/runs/export?ids=${ids.builtIn},nobody,${ids.saved}`);
    expect(table.headers.get('Content-Type')).to.equal('text/csv; charset=utf-8');
    expect(table.headers.get('Content-Disposition')).to.include('filename="runs.csv"');
    const lines = table.text.split('\r\n');
    expect(lines[0]).to.match(/^id,blueprint_id,input_topic,status,/);
    expect(lines[1]).to.include(`${ids.builtIn},,"'=2+3 forest, ""quoted""\nline",completed,`);
    expect(lines[2]).to.include(`${ids.saved},pair,A forest,completed,`);
    expect(lines.slice(3)).to.deep.equal(['']);
    const all = await rest.get('/api/runs/export?format=ndjson&trial=0&sort=created_at');
    expect(all.headers.get('Content-Type')).to.equal('application/x-ndjson');
    const exported = all.text
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(exported).to.deep.equal(await list('trial=0&sort=created_at'));
    const bytes = await council.runs.export({ ids: [ids.builtIn, ids.saved] });
    expect(new TextDecoder().decode(bytes).split('\r\n')).to.have.lengthOf(4);
    rest.problem(await rest.get('/api/runs/export?format=xml'), 422);
  });

  it('estimates the next run of a council from its completed runs, forks apart', async () => {
    const { usage, duration_ms: duration } = await council.run(ids.saved).record();
    const estimate = rest.read(await rest.get('/api/estimate?blueprint_id=pair'), 200, 'estimate.json');
    const tokens = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
    expect(estimate).to.deep.equal({
      blueprint_id: 'pair',
      runs: 1,
      cost_usd: { median: 0, p95: 0 },
      tokens: { median: tokens, p95: tokens },
      duration_ms: { median: duration, p95: duration },
    });
    const fork = await council.run(ids.saved).fork({ at: 3 });
    await rest.until(fork.id, isOver);
    // A fork makes only the rest of the calls.
    expect(rest.read(await rest.get('/api/estimate?blueprint_id=pair'), 200, 'estimate.json')).to.deep.equal(estimate);
    expect(await council.runs.estimate()).to.include({ blueprint_id: null, runs: 1 });
    const none = { median: null, p95: null };
    expect(await council.runs.estimate({ blueprint: 'nobody' })).to.deep.include({ runs: 0, tokens: none });
  });
});
