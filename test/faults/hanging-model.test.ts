import { openAiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { councilOf, fakeOpenAi } from '../support/fake-openai.js';
import { hangs } from '../support/fake-server.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const HANGING = IS_SOAK ? 300 : 64;
const HEALTHY = IS_SOAK ? 300 : 24;
/** The default of MAX_MODEL_CALLS, and the three quarters of it that one model may use. */
const [SLOTS, SLOTS_OF_MODEL] = [64, 48];
const STUCK = { id: 'stuck', name: 'Stuck', nodes: [{ id: 'a', model: 'hanging' }], edges: [] };

describe('A model whose calls hang', () => {
  let server: FakeOpenAi;
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    const council = councilOf([8]);
    server = await fakeOpenAi((call, index) => (call.body.model === 'hanging' ? hangs : council(call, index)));
    const model = openAiModel({ apiKey: null, baseUrl: `${server.url}/v1`, model: 'healthy' });
    service = await startService({ model, maxModelCalls: SLOTS });
    rest = restClient(service.url);
  });
  after(async () => {
    await service.stop();
    await server.stop();
  });

  /** The total time of the runs of the other model, in milliseconds. */
  const healthyRuns = async (): Promise<number> => {
    const fromMs = performance.now();
    const started = await Promise.all(Array.from({ length: HEALTHY }, () => rest.start()));
    // Polls the runs one after the other, because polling all at once would take processor time from them.
    for (const runId of started) expect((await rest.until(runId, isOver)).status).to.equal('completed');
    return performance.now() - fromMs;
  };

  it(`does not block ${HEALTHY} runs of another model while ${HANGING} runs wait for it`, async () => {
    const aloneMs = await healthyRuns();
    rest.read(await rest.post('/api/councils/', STUCK), 201, 'blueprint.json');
    const stuck = await Promise.all(
      Array.from({ length: HANGING }, async () => {
        const reply = await rest.post('/api/councils/stuck/run', { input_topic: 'Trees' });
        return rest.read(reply, 202, 'run-start.json').run_id;
      }),
    );
    await untilTrue(async () => {
      const ready = rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
      return ready.model_calls?.some(({ active, waiting }) => active + waiting === HANGING) ?? false;
    });
    const besideMs = await healthyRuns();
    // None of the hanging calls has ended.
    expect([server.open(), server.abandoned()]).to.deep.equal([SLOTS_OF_MODEL, 0]);
    for (const runId of stuck.slice(0, 3)) expect((await rest.poll(runId)).status).to.equal('running');
    if (IS_SOAK) process.stdout.write(figures({ aloneMs, besideMs }));
  });
});

function figures({ aloneMs, besideMs }: { readonly aloneMs: number; readonly besideMs: number }): string {
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  return `${HEALTHY} runs: ${seconds(aloneMs)} alone, ${seconds(besideMs)} beside ${HANGING} runs of a model that hangs\n`;
}
