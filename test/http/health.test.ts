import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('GET /api/health', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
  });
  after(() => service.stop());

  it('names the service and says that it is ok', async () => {
    const reply = await rest.get('/api/health');
    expect(rest.read(reply, 200, 'health.json')).to.deep.equal({ status: 'ok', service: 'council-run-service' });
  });

  it('may not be stored or sniffed', async () => {
    const { headers } = await rest.get('/api/health');
    expect(headers.get('Cache-Control')).to.equal('no-store');
    expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
  });

  it('says under /ready that the service is ready', async () => {
    const reply = await rest.get('/api/health/ready');
    expect(rest.read(reply, 200, 'readiness.json')).to.deep.equal({ status: 'ready', service: 'council-run-service' });
  });
});
