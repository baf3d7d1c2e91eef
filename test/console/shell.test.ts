import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describeInBrowser('The console', (browser) => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  it('navigates without page loads, and opens each page directly', async () => {
    const page = await browser.open(`${service.url}/console/`);
    await page.evaluate('globalThis.mark = 1');
    for (const place of ['Inbox', 'Blueprints', 'Documents', 'Runs']) {
      await page.getByRole('navigation').getByRole('link', { name: place, exact: true }).click();
      await page.getByRole('heading', { level: 1, name: place }).waitFor();
    }
    expect(await page.evaluate('globalThis.mark')).to.equal(1);
    await page.goto(`${service.url}/console/documents`);
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    expect(await page.getByRole('main').count()).to.equal(1);
  });

  it('asks for a key in a focused field if the service needs one, and forgets it on request', async () => {
    const locked = await startService();
    try {
      const { key } = await new CouncilClient({ url: locked.url }).keys.add({ name: 'ann', scopes: ['admin', 'read'] });
      const page = await browser.open(`${locked.url}/console/`, { expectsRefusals: true });
      await page.getByLabel('Key').waitFor();
      await page.keyboard.type('council_wrong');
      expect(await page.getByLabel('Key').inputValue()).to.equal('council_wrong');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').waitFor();
      await page.getByLabel('Key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('ann').waitFor();
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    } finally {
      await locked.stop();
    }
  });
});
