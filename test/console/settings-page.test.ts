import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { LOOKS, describeInBrowser, faultsIn, overflows, settled } from '../support/console-browser.js';
import { councilKeys } from '../support/council-command.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The settings', (browser) => {
  let service: RunningService;
  let admin: string;
  let reader: string;

  before(async () => {
    service = await startService();
    const first = new CouncilClient({ url: service.url });
    admin = (await first.keys.add({ name: 'ann', scopes: ['admin', 'read', 'audit'] })).key;
    reader = (await new CouncilClient({ url: service.url, key: admin }).keys.add({ name: 'eve', scopes: ['read'] }))
      .key;
  });
  after(() => service.stop());

  async function openAs(key: string, path: string): Promise<Page> {
    const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
    await page.context().request.post(`${service.url}/api/session`, { data: { key } });
    await page.goto(`${service.url}/console/${path}`);
    await settled(page);
    return page;
  }

  it('save the decisions of a time as a table', async () => {
    const page = await openAs(admin, 'settings?tab=decisions');
    await page.getByLabel('From (UTC)').fill('2026-01-01');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).to.equal('oversight.csv');
    expect(readFileSync(await download.path(), 'utf8')).to.match(
      /^decided_at,actor,decided_by,action,[a-z0-9_,]*,votes\r\n$/,
    );
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    const other = await openAs(reader, 'settings?tab=decisions');
    await other.getByText('A key with the scope audit').waitFor();
  });

  it('add a key whose text is shown once and works, show its use, and revoke it', async () => {
    const page = await openAs(admin, 'settings?tab=keys');
    await page.getByRole('button', { name: 'Add a key' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a key' });
    await dialog.getByLabel('Name').fill('zoe');
    await dialog.getByRole('checkbox', { name: /^run:/ }).check();
    await dialog.getByLabel('Expires').selectOption({ label: 'In 30 days' });
    expect(await faultsIn(page)).to.deep.equal([]);
    await dialog.getByRole('button', { name: 'Add the key' }).click();
    const text = await page.getByText(/^council_/).innerText();
    const client = new CouncilClient({ url: service.url, key: text });
    expect(await client.session.get()).to.deep.include({ actor: 'zoe', scopes: ['read', 'run'] });
    await page.reload();
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'zoe' }) });
    await row.getByText(/by ann/).waitFor();
    await row.getByText(new Date().getUTCFullYear().toString()).first().waitFor();
    expect(await page.getByText(/council_/).count()).to.equal(0);
    expect(await faultsIn(page)).to.deep.equal([]);
    await row.getByRole('button', { name: 'Revoke zoe' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.getByText(/^revoked/).waitFor();
    let fault: unknown = null;
    await client.session.get().catch((error: unknown) => (fault = error));
    expect(fault).to.have.property('name', 'UnauthorizedError');
    await page.close();
  });

  soakIt('say what a key without admin may see, and keep the theme of each key', async () => {
    const page = await openAs(reader, 'settings?tab=keys');
    await page.getByRole('heading', { name: 'Your key does not show other keys' }).waitFor();
    await page.getByText('read', { exact: true }).waitFor();
    await page.getByRole('tab', { name: 'This browser' }).click();
    await page.getByRole('button', { name: 'Dark' }).click();
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).to.equal('dark');
    await page.reload();
    await page.getByRole('button', { name: 'Dark', pressed: true }).waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.getByRole('tab', { name: 'About' }).click();
    await page.getByText('The log answers').waitFor();
    await page.getByText('Default model').waitFor();
    await page.close();
  });

  soakIt('are beside a page of models with each provider, its state and its default model', async () => {
    const page = await openAs(reader, 'models');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: /^offline/ }) });
    await row.getByText('default', { exact: true }).waitFor();
    await row.getByText('Not asked yet').waitFor();
    const prices = page.getByRole('region', { name: 'Prices' });
    await prices.getByRole('rowheader').first().waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.close();
  });

  soakIt('register a webhook whose secret is shown once, and show its deliveries', async () => {
    const page = await openAs(admin, 'settings?tab=webhooks');
    await page.getByLabel('Address of the receiver').fill('http://127.0.0.1:1/hook');
    await page.getByRole('button', { name: 'Add the webhook' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Address of the receiver').fill('http://receiver.example/hook');
    await page.getByRole('button', { name: 'Add the webhook' }).click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    const card = page.getByRole('list', { name: 'Webhooks' }).getByRole('listitem');
    await card.getByText('Sends: run waits, run completed, run failed').waitFor();
    await card.getByRole('button', { name: 'Deliveries' }).click();
    await card.getByText('No events yet.').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await card.getByRole('button', { name: /^Delete/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Deleted the webhook').waitFor();
    await page.close();
  });
});

describeInBrowser('The settings of a service without keys', (browser) => {
  soakIt('show a command that adds a first key with which a person can use every page', async () => {
    const service = await startService();
    const page = await browser.open(`${service.url}/console/settings?tab=keys`, { width: 360 });
    await settled(page);
    expect(await overflows(page)).to.equal(false);
    const [npx, council, keys, ...words] = (await page.locator('code').innerText()).split(/\s+/);
    expect([npx, council, keys]).to.deep.equal(['npx', 'council', 'keys']);
    const { code, stdout, stderr } = await councilKeys(words, {});
    expect(code, stderr).to.equal(0);
    const { scopes } = await new CouncilClient({ url: service.url, key: stdout.trim() }).session.get();
    expect(scopes).to.have.members(['read', 'run', 'approve', 'author', 'documents', 'audit', 'admin']);
    await page.close();
    await service.stop();
  });
});
