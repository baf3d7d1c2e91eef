import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('What the service reports about itself', () => {
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;

  before(async () => {
    const own = { 'my/model': { input_cost_per_token: 0.000_002, output_cost_per_token: 0.000_01 } };
    service = await startService({ eventStore: null, prices: own });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  it('at /api/about is its version, its log and its default model, and no path of the machine', async () => {
    const first = rest.read(await rest.get('/api/about'), 200, 'about.json');
    expect(first).to.deep.include({ service: 'council-run-service', node: process.version, offline: true });
    expect(first.version).to.match(/^\d+\.\d+\.\d+$/);
    expect(first.log.kind).to.equal('embedded');
    await rest.until(await rest.start(), isOver);
    const { log, uptime_ms: uptimeMs, started_at: startedAt } = await council.about();
    expect(log.bytes).to.be.above(0);
    expect((log.position ?? '') > (first.log.position ?? '')).to.equal(true);
    expect(uptimeMs).to.be.at.least(first.uptime_ms);
    expect(startedAt).to.equal(first.started_at);
    expect(JSON.stringify(await council.about())).not.to.include(service.dataDir);
  });

  it('at /api/prices are the prices in use per million tokens, each with its table, source and date', async () => {
    const prices = rest.read(await rest.get('/api/prices'), 200, 'price-list.json');
    expect(prices.find(({ model }) => model === 'my/model')).to.deep.equal({
      model: 'my/model',
      input_usd: 2,
      output_usd: 10,
      cache_read_usd: 2,
      cache_write_usd: 2,
      table: 'PRICES_FILE',
      source: null,
      read_at: null,
    });
    const shipped = prices.filter(({ table }) => table === 'shipped table');
    expect(shipped).not.to.deep.equal([]);
    for (const { model, source, read_at: readAt } of shipped) {
      expect(readAt, model).to.match(/^\d{4}-\d\d-\d\d$/);
      expect(source, model).not.to.equal(null);
    }
    expect(await council.prices()).to.deep.equal(prices);
  });
});
