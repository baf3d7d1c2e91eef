import { expect } from 'chai';
import { councilService } from '../support/council-service.js';
import { isOver } from '../support/rest-client.js';

describe('council overview', () => {
  const council = councilService();

  it('shows the figures of the runs at a service, as text or as JSON', async () => {
    const { rest } = council;
    await rest.until(await rest.start(), isOver);
    const { code, stdout, stderr } = await council.ask('overview');
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d: 1 completed, 0 failed, 0 rejected, 0 cancelled$/m);
    expect(stdout)
      .to.match(/^Duration: median \d+\.\d s, p95 \d+\.\d s$/m)
      .and.to.include('Waiting now: 0');
    expect(stdout).to.match(/^ {2}built-in council: 1 run, score 8, \d+ tokens in, \d+ out, \$0$/m);
    const json = await council.ask('overview', '--json');
    expect(JSON.parse(json.stdout)).to.deep.equal(JSON.parse((await rest.get('/api/overview')).text));
  });

  it('exits with 2 for a day that does not exist', async () => {
    expect((await council.ask('overview', '--from', 'x')).code).to.equal(2);
  });
});
