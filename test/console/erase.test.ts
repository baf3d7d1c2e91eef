import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn, LOOKS } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

describeInBrowser('The erasure of a run in the console', (browser) => {
  let service: RunningService;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([8])) });
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });

  it('asks first and says what stays; then the list lacks the run, and its page says that it was erased', async () => {
    const run = await new CouncilClient({ url: service.url }).runs.start({ topic: 'Forget me' });
    await run.result();
    const page = await browser.open(`${service.url}/console/runs/${run.id}`, { expectsRefusals: true });
    await page.getByRole('button', { name: 'Erase the run' }).click();
    const dialog = page.getByRole('dialog', { name: 'Erase this run?' });
    await dialog.getByText('Forks of it stay whole').waitFor();
    await dialog.getByLabel('Reason').fill('Asked by the author');
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    expect((await run.status()).status).to.equal('completed');
    await page.getByRole('button', { name: 'Erase the run' }).click();
    await dialog.getByRole('button', { name: 'Erase the run' }).click();
    await page.getByText('Erased the run').waitFor();
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
    expect(await page.getByText('Forget me').count()).to.equal(0);
    const answer = await fetch(`${service.url}/api/runs/${run.id}`);
    expect(answer.status).to.equal(410);
    expect(await answer.json()).to.have.deep.nested.property('erased.reason', 'Asked by the author');
    await page.goto(`${service.url}/console/runs/${run.id}`);
    await page.getByRole('heading', { name: 'Run erased' }).waitFor();
    await page.getByText(/was erased at/).waitFor();
  });
});
