import { expect } from 'chai';
import { councilOf, fakeOpenAi } from '../support/fake-openai.js';
import { parseMetrics, valueOf } from '../support/prometheus-text.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startServiceProcess } from '../support/service-process.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { soakIt } from '../support/soak.js';

onEmbeddedLog(() =>
  describe('The metrics of models with a price', () => {
    soakIt('count the tokens and the cost that the runs record, by provider and model', async () => {
      const [server, dir] = [await fakeOpenAi(), tempDir()];
      server.answerBy(councilOf([9]));
      const settings = { OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: server.url, OPENAI_MODEL: 'gpt-5.4' };
      const service = await startServiceProcess(dir.path, { environment: settings });
      try {
        const rest = restClient(service.url);
        const { usage } = await rest.until(await rest.start(), isOver);
        const [first] = usage?.by_model ?? [];
        expect([first?.model, first?.calls]).to.deep.equal(['openai/gpt-5.4', 3]);
        const metrics = parseMetrics((await rest.get('/metrics')).text);
        const labels = { provider: 'openai', model: 'gpt-5.4' };
        const value = (name: string): number => valueOf(metrics, `council_model_${name}_total`, labels);
        expect(value('cost_usd'))
          .to.be.closeTo(usage?.cost_usd ?? -1, 1e-9)
          .and.above(0);
        expect(value('input_tokens')).to.equal(usage?.input_tokens).and.above(0);
        expect(value('output_tokens')).to.equal(usage?.output_tokens).and.above(0);
        expect(value('calls')).to.equal(3);
      } finally {
        await service.stop();
        await server.stop();
        dir.remove();
      }
    });
  }),
);
