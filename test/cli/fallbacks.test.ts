import { expect } from 'chai';
import { readConfig } from '../../src/config.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, refuses, says } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('council run, when a model does not answer', () => {
  let bench: CouncilBench;
  let openai: FakeOpenAi | null;
  let service: RunningService | null;

  beforeEach(() => {
    bench = councilBench();
    [openai, service] = [null, null];
  });
  afterEach(async () => {
    await service?.stop();
    await openai?.stop();
    await bench.clear();
  });

  /** Standard error of a run here, or at a service, on a server with these answers. */
  async function shownBy(replies: readonly Reply[], isRemote: boolean): Promise<string> {
    openai = await fakeOpenAi(replies);
    const env = { OPENAI_BASE_URL: openai.url, OPENAI_MODEL: 'gpt-x' };
    if (isRemote) {
      const config = readConfig(env);
      const model = routedModel(config.providers, { ...config, system: nodeSystem() });
      service = await startService({ model, modelOutageMs: 90_000 });
    }
    const nodes = [{ id: 'poet', model: 'openai', fallbacks: ['offline'] }];
    const file = bench.written('poet.json', JSON.stringify({ name: 'Poet', nodes }));
    const place = service === null ? [] : ['--url', service.url];
    const ended = await bench.run(['Trees', '--blueprint', file, ...place], {
      env: { ...env, MODEL_OUTAGE_MS: '90000' },
    });
    expect(ended.code, ended.stderr).to.equal(0);
    return ended.stderr;
  }

  for (const isRemote of [false, true]) {
    const place = isRemote ? 'at a service' : 'here';

    it(`says which fallback is asked, and that it answered, ${place}`, async () => {
      const shown = await shownBy([refuses(404, { code: 'model_not_found' })], isRemote);
      expect(shown).to.match(
        /^poet, openai\/gpt-x: .*does not have this model\. The service asks offline\/\S+ instead\.$/m,
      );
      expect(shown).to.match(/^poet, offline\/offline-1: The fallback answered\.$/m);
      expect(shown).to.match(/^Completed .* tokens in, \d+ out, \$0, 1 call not reported$/m);
    });

    it(`says that it waits for a server and up to how long, ${place}`, async () => {
      const shown = await shownBy([refuses(503, { headers: { 'Retry-After': '1' } }), says('A poem')], isRemote);
      expect(shown).to.match(/^poet, openai\/gpt-x: .* The service waits for the server for up to 90 s\.$/m);
      expect(shown).to.not.include('fallback');
      expect(shown).to.match(
        /^Completed .*, 11 tokens in, 7 out, no price for openai\/gpt-x \(see PRICES_FILE\), 1 call not reported$/m,
      );
    });
  }
});
