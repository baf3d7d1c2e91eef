import { expect } from 'chai';
import { ModelFailed } from '../../src/errors.js';
import type { Readiness } from '../../src/generated/schemas.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

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

  it('has headers against caching and content sniffing', async () => {
    const { headers } = await rest.get('/api/health');
    expect(headers.get('Cache-Control')).to.equal('no-store');
    expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
  });

  it('reports under /ready that the service is ready', async () => {
    const reply = await rest.get('/api/health/ready');
    expect(rest.read(reply, 200, 'readiness.json')).to.deep.equal({ status: 'ready', service: 'council-run-service' });
  });

  it('reports under /ready how many calls of models run, wait, and may run', async () => {
    const model = scriptedModel(() => 'hold');
    const busy = await startService({ model, maxModelCalls: 2 });
    try {
      const there = restClient(busy.url);
      await Promise.all([there.start(), there.start(), there.start()]);
      await model.called(2);
      const read = async (): Promise<Readiness> =>
        there.read(await there.get('/api/health/ready'), 200, 'readiness.json');
      const expected = [{ model: 'scripted-1', active: 2, waiting: 1, slots: 2 }];
      await untilTrue(async () => JSON.stringify((await read()).model_calls) === JSON.stringify(expected));
    } finally {
      await busy.stop();
    }
  });

  it('reports under /ready which models are unreachable while runs wait for them', async () => {
    const refused = new ModelFailed('Refused', { kind: 'connection_refused', retryable: true });
    const sick = await startService({ model: scriptedModel(() => ({ error: refused })) });
    try {
      const there = restClient(sick.url);
      await there.start();
      const answers = async (): Promise<Readiness> =>
        there.read(await there.get('/api/health/ready'), 200, 'readiness.json');
      for (let answer = await answers(); answer.models_unreachable?.[0] !== 'scripted-1'; answer = await answers());
    } finally {
      await sick.stop();
    }
  });
});
