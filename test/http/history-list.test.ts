import { expect } from 'chai';
import { manualSystem } from '../support/manual-system.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

describe('GET /api/runs/', () => {
  let service: RunningService;
  let rest: RestClient;
  /** Newest first; runs with the same time are ordered by id. */
  let expected: readonly string[];

  before(async () => {
    const clock = manualSystem();
    service = await startService({ model: scriptedModel(() => 'hold'), system: clock });
    rest = restClient(service.url);
    const first = [await rest.start(), await rest.start(), await rest.start()].toSorted();
    clock.advance(1);
    const second = [await rest.start(), await rest.start()].toSorted();
    expected = [...second, ...first];
  });
  after(() => service.stop());

  const idsOf = async (path: string): Promise<readonly string[]> =>
    rest.read(await rest.get(path), 200, 'history-list.json').map(({ id }) => id);

  it('lists the newest first, ties by id', async () => {
    expect(await idsOf('/api/runs/')).to.deep.equal(expected);
  });

  for (const [query, from, to] of [
    ['limit=1', 0, 1],
    ['limit=2&offset=1', 1, 3],
    ['limit=200&offset=4', 4, 5],
    ['offset=5', 5, 5],
    ['limit=2&page=7&constructor=1&__proto__=1', 0, 2],
  ] as const) {
    it(`pages by ${query}`, async () => {
      expect(await idsOf(`/api/runs/?${query}`)).to.deep.equal(expected.slice(from, to));
      expect(await idsOf(`/api/runs?${query}`)).to.deep.equal(expected.slice(from, to));
    });
  }

  for (const [query, field, type] of [
    ['limit=0', 'limit', 'greater_than_equal'],
    ['limit=201', 'limit', 'less_than_equal'],
    ['offset=-1', 'offset', 'greater_than_equal'],
    ['offset=9007199254740992', 'offset', 'less_than_equal'],
    ['limit[]=1', 'limit', 'repeated'],
    ['limit=abc', 'limit', 'int_parsing'],
    ['limit=1.0', 'limit', 'int_parsing'],
    ['limit=1e2', 'limit', 'int_parsing'],
    ['limit=1&limit=1', 'limit', 'repeated'],
  ] as const) {
    it(`refuses ${query.slice(0, 40)} with 422`, async () => {
      const { errors } = rest.problem(await rest.get(`/api/runs/?${query}`), 422);
      expect(errors?.map((error) => [error.loc, error.type])).to.deep.equal([[['query', field], type]]);
    });
  }

  it('reports each invalid parameter', async () => {
    const { errors } = rest.problem(await rest.get('/api/runs/?limit=0&offset=-1'), 422);
    expect(errors?.map(({ loc }) => loc[1])).to.have.members(['limit', 'offset']);
  });
});

describe('GET /api/runs/ of a service that finishes runs', () => {
  it('shows 50 records by default', async () => {
    const service = await startService({ model: scriptedModel() });
    try {
      const rest = restClient(service.url);
      const ids = await Promise.all(Array.from({ length: 55 }, () => rest.start()));
      await Promise.all(ids.map((id) => rest.until(id, isOver)));
      const records = rest.read(await rest.get('/api/runs'), 200, 'history-list.json');
      expect(records).to.have.length(50);
      expect(records.every(({ status, completed_at }) => status === 'completed' && completed_at !== null)).to.be.true;
    } finally {
      await service.stop();
    }
  });

  it('is empty at first', async () => {
    const service = await startService({ model: scriptedModel() });
    try {
      const rest = restClient(service.url);
      expect(rest.read(await rest.get('/api/runs/'), 200, 'history-list.json')).to.deep.equal([]);
    } finally {
      await service.stop();
    }
  });
});
