import { expect } from 'chai';
import { join } from 'node:path';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('council overview', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    bench = councilBench();
    service = await startService({ dataDir: join(bench.path, 'service'), eventStore: null });
    rest = restClient(service.url);
  });
  after(async () => {
    await service.stop();
    await bench.clear();
  });

  it('shows the figures of the runs at a service, as text or as JSON', async () => {
    await rest.until(await rest.start(), isOver);
    const { code, stdout, stderr } = await bench.council(['overview', '--url', service.url]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d: 1 completed, 0 failed, 0 rejected, 0 cancelled$/m);
    expect(stdout)
      .to.match(/^Duration: median \d+\.\d s, p95 \d+\.\d s$/m)
      .and.to.include('Waiting now: 0');
    expect(stdout).to.match(/^ {2}built-in council: 1 runs, score 8, \d+ tokens in, \d+ out, \$0$/m);
    const json = await bench.council(['overview', '--json', '--url', service.url]);
    expect(JSON.parse(json.stdout)).to.deep.equal(JSON.parse((await rest.get('/api/overview')).text));
  });

  it('exits with 2 without an address, or for a day that does not exist', async () => {
    expect((await bench.council(['overview'])).code).to.equal(2);
    expect((await bench.council(['overview', '--from', 'x', '--url', service.url])).code).to.equal(2);
  });
});
