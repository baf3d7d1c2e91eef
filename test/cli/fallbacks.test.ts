import { expect } from 'chai';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, refuses, says } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';

describe('council run, when a model does not answer', () => {
  let bench: CouncilBench;
  let openai: FakeOpenAi | null;

  beforeEach(() => {
    bench = councilBench();
    openai = null;
  });
  afterEach(async () => {
    await openai?.stop();
    await bench.clear();
  });

  /** Standard error of a run on a server with these answers. */
  async function shownBy(...replies: readonly Reply[]): Promise<string> {
    openai = await fakeOpenAi(replies);
    const env = { OPENAI_BASE_URL: openai.url, OPENAI_MODEL: 'gpt-x', MODEL_OUTAGE_MS: '90000' };
    const nodes = [{ id: 'poet', model: 'openai', fallbacks: ['offline'] }];
    const file = bench.written('poet.json', JSON.stringify({ name: 'Poet', nodes }));
    const ended = await bench.run(['Trees', '--blueprint', file], { env });
    expect(ended.code, ended.stderr).to.equal(0);
    return ended.stderr;
  }

  it('says which fallback is asked, and that it answered', async () => {
    const shown = await shownBy(refuses(404, { code: 'model_not_found' }));
    expect(shown).to.match(
      /^poet, openai\/gpt-x: .*does not have this model\. The service asks offline\/\S+ instead\.$/m,
    );
    expect(shown).to.match(/^poet, offline\/offline-1: The fallback answered\.$/m);
    expect(shown).to.match(/^Completed .* tokens in, \d+ out, \$0, 1 call not reported$/m);
  });

  it('says that it waits for a server and up to how long', async () => {
    const shown = await shownBy(refuses(503, { headers: { 'Retry-After': '1' } }), says('A poem'));
    expect(shown).to.match(/^poet, openai\/gpt-x: .* The service waits for the server for up to 90 s\.$/m);
    expect(shown).to.not.include('fallback');
    expect(shown).to.match(
      /^Completed .*, 11 tokens in, 7 out, no price for openai\/gpt-x \(see PRICES_FILE\), 1 call not reported$/m,
    );
  });
});
