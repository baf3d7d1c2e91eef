import { expect } from 'chai';
import type { HistoryRecord } from '../../src/generated/schemas.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, corruptRecord, startGodRun } from '../support/god-run.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

const LIST = 'history-list.json';

describe('GET /api/runs/ with filters', () => {
  let service: RunningService;
  let rest: RestClient;
  let records: readonly HistoryRecord[];
  let paused: string;
  let fork: string;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([6, 8.5, 9, 9, 9, 9])) });
    rest = restClient(service.url);
    const nodes = [{ id: 'write' }, { id: 'judge', type: 'critic' }];
    const edges = [{ source: 'write', target: 'judge' }];
    await rest.post('/api/councils/', { id: 'pair', name: 'Pair', nodes, edges });
    for (const topic of ['Trees of the north', 'Rivers', 'Of trees and rivers']) {
      const runId = await rest.start(topic);
      await rest.until(runId, isOver);
    }
    paused = await startOf('/api/councils/pair/run', { input_topic: 'The wind', god_mode: true });
    await rest.until(paused, ({ status }) => status === 'paused');
    const cancelled = await startOf('/api/councils/pair/run', { input_topic: 'The rain', god_mode: true });
    await rest.until(cancelled, ({ status }) => status === 'paused');
    await rest.post(`/api/councils/run/${cancelled}/cancel`);
    fork = await startOf(`/api/runs/${paused}/fork`, { at: 2, changes: { input_topic: 'Another wind' } });
    await rest.until(fork, ({ status }) => status === 'paused');
    records = rest.read(await rest.get('/api/runs/'), 200, LIST);
  });
  after(() => service.stop());

  const startOf = async (path: string, body: object): Promise<string> =>
    rest.read(await rest.post(path, body), 202, 'run-start.json').run_id;

  const textOf = (query: Readonly<Record<string, string | number>>): string =>
    Object.entries(query)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('&');
  const listed = async (query: Readonly<Record<string, string | number>>): Promise<readonly string[]> =>
    rest.read(await rest.get(`/api/runs/?${textOf(query)}`), 200, LIST).map(({ id }) => id);
  const those = (fits: (run: HistoryRecord) => boolean): readonly string[] => records.filter(fits).map(({ id }) => id);

  it('lists the runs that match a status, blueprint, parent, score, time or words', async () => {
    const [newest, middle] = [records[0]?.created_at ?? '', records[3]?.created_at ?? ''];
    expect(records).to.have.length(6);
    for (const [query, fits] of [
      [{ status: 'completed' }, (run) => run.status === 'completed'],
      [{ status: 'paused' }, (run) => run.status === 'paused'],
      [{ status: 'failed' }, (run) => run.status === 'failed'],
      [{ status: 'pending' }, () => false],
      [{ outcome: 'completed' }, (run) => run.status === 'completed'],
      [{ outcome: 'cancelled' }, (run) => run.error?.startsWith('Cancelled') === true],
      [{ outcome: 'rejected' }, () => false],
      [{ outcome: 'failed' }, () => false],
      [{ blueprint_id: 'pair' }, (run) => run.blueprint_id === 'pair'],
      [{ blueprint_id: 'nobody' }, () => false],
      [{ parent: paused }, (run) => run.id === fork],
      [{ parent: NO_RUN }, () => false],
      [{ actor: 'ann' }, () => false],
      [{ min_score: 8.5 }, (run) => (run.critic_score ?? -1) >= 8.5],
      [{ min_score: 0, max_score: '8.75' }, (run) => run.critic_score !== null && run.critic_score <= 8.75],
      [{ from: middle }, (run) => (run.created_at ?? '') >= middle],
      [{ to: middle }, (run) => (run.created_at ?? '') <= middle],
      [{ from: newest, to: newest }, (run) => run.created_at === newest],
      [{ from: newest.slice(0, 10) }, (run) => (run.created_at ?? '') >= newest.slice(0, 10)],
      [{ to: newest.slice(0, 10) }, (run) => (run.created_at ?? '').slice(0, 10) <= newest.slice(0, 10)],
      [{ from: newest.replace('Z', '+00:00') }, (run) => (run.created_at ?? '') >= newest],
      [{ to: '2020-01-01' }, () => false],
      [{ q: 'trees' }, (run) => /trees/i.test(run.input_topic)],
      [{ q: 'TREES riv*' }, (run) => /trees and rivers/.test(run.input_topic)],
      [{ q: 'wind', status: 'paused', blueprint_id: 'pair' }, (run) => run.input_topic.endsWith('wind')],
      [{ q: '' }, () => true],
      [{ q: '"' }, () => false],
    ] as const satisfies readonly (readonly [Record<string, string | number>, (run: HistoryRecord) => boolean])[]) {
      expect(await listed(query), JSON.stringify(query)).to.deep.equal(those(fits));
      const counted = await rest.get(`/api/runs/?limit=1&count=1&${textOf(query)}`);
      expect(counted.headers.get('Total-Count'), JSON.stringify(query)).to.equal(String(those(fits).length));
    }
  });

  it('finds a run by a word of its topic as soon as it is started, and by its final draft', async () => {
    const runId = await rest.start('Zanzibar');
    expect(await listed({ q: 'zanzibar' })).to.deep.equal([runId]);
    const { final_draft: draft } = await rest.until(runId, isOver);
    const [word = ''] = /[a-z]+/i.exec(draft ?? '') ?? [];
    expect(await listed({ q: `zanzibar ${word}` })).to.deep.equal([runId]);
  });

  it('sorts by start, score and wait, and counts the runs only on request', async () => {
    const all = rest.read(await rest.get('/api/runs/'), 200, LIST);
    expect(await listed({ sort: 'created_at' })).to.deep.equal(all.map(({ id }) => id).toReversed());
    const scores = rest.read(await rest.get('/api/runs/?sort=-score'), 200, LIST).map((run) => run.critic_score);
    expect(scores).to.deep.equal(scores.toSorted((one, other) => (other ?? -1) - (one ?? -1)));
    expect((await listed({ sort: 'waiting' })).slice(0, 2)).to.deep.equal([paused, fork]);
    const reply = await rest.get('/api/runs/');
    expect(reply.headers.get('Total-Count')).to.equal(null);
    expect((await rest.get('/api/runs/?count=0')).headers.get('Total-Count')).to.equal(null);
    expect((await rest.get('/api/runs/?count=true&offset=3')).headers.get('Total-Count')).to.equal(String(all.length));
  });

  for (const [query, field] of [
    ['status=done', 'status'],
    ['status=failed&status=paused', 'status'],
    ['sort=age', 'sort'],
    ['min_score=11', 'min_score'],
    ['min_score=high', 'min_score'],
    ['from=yesterday', 'from'],
    ['from=2026-13-01', 'from'],
    ['to=2026-02-30T00:00:00Z', 'to'],
    ['cursor=x', 'cursor'],
    ['count=2', 'count'],
    [`q=${'x'.repeat(1_001)}`, 'q'],
  ] as const) {
    it(`refuses ${query.slice(0, 40)} with 422`, async () => {
      const { errors } = rest.problem(await rest.get(`/api/runs/?${query}`), 422);
      expect(errors?.map(({ loc }) => loc)).to.deep.equal([['query', field]]);
    });
  }

  it('refuses a cursor of another order with 422', async () => {
    const next = nextOf(await rest.get('/api/runs/?limit=1')) ?? expect.fail('no link');
    rest.problem(await rest.get(`${next}&sort=score`), 422);
  });

  soakIt('returns each run on one page, in any order, while new runs start', async () => {
    for (const sort of ['-created_at', 'created_at', '-score', 'score', 'waiting']) {
      for (const filter of ['', '&status=completed', '&min_score=1', '&q=trees', '&blueprint_id=pair']) {
        const before = await listed({ sort, ...Object.fromEntries(new URLSearchParams(filter)) });
        const found: string[] = [];
        for (let next: string | null = `/api/runs/?limit=2&sort=${sort}${filter}`; next !== null;) {
          const reply: Reply = await rest.get(next);
          found.push(...rest.read(reply, 200, LIST).map(({ id }) => id));
          next = nextOf(reply);
          if (found.length < 4) await rest.until(await rest.start('Trees that come later'), isOver);
        }
        expect(new Set(found).size, sort + filter).to.equal(found.length);
        expect(
          found.filter((id) => before.includes(id)),
          sort + filter,
        ).to.deep.equal(before);
      }
    }
  });

  it('counts a corrupt run as failed, as it shows it', async () => {
    const damaged = await startGodRun(service.context, graphOf('one -> two'), 'Damaged trees');
    await pausedBefore(service.context, damaged, 'one');
    expect(await listed({ q: 'damaged', status: 'paused' })).to.deep.equal([damaged]);
    await corruptRecord(service.context, damaged);
    rest.problem(await rest.get(`/api/runs/${damaged}/state`), 500);
    expect(await listed({ q: 'damaged', status: 'paused' })).to.deep.equal([]);
    const [row] = rest.read(await rest.get('/api/runs/?q=damaged&status=failed'), 200, LIST);
    expect(row).to.include({ id: damaged, status: 'failed', error: 'The record of this run is damaged' });
  });

  /** The target of `Link: <…>; rel="next"`, or null without one. */
  function nextOf({ headers }: Reply): string | null {
    const link = headers.get('Link');
    return link === null ? null : (/^<(\/[^<>]*)>; rel="next"$/.exec(link)?.[1] ?? expect.fail(link));
  }
});
