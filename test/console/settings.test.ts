import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/console-browser.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The settings of a user', (browser) => {
  let service: RunningService;
  const keys = { ann: '', ben: '' };

  before(async () => {
    service = await startService();
    const rest = restWith(service.url, await addFirstKey(service.url));
    rest.read(await rest.post('/api/councils/run', { input_topic: 'The sea' }), 202, 'run-start.json');
    for (const name of ['ann', 'ben'] as const) keys[name] = await addKey(rest, { name, scopes: ['read', 'approve'] });
  });
  after(() => service.stop());

  const signIn = async (page: Page, who: keyof typeof keys): Promise<void> => {
    await page.getByLabel('Key', { exact: true }).fill(keys[who]);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.who', { hasText: who }).waitFor();
  };
  const signOut = (page: Page): Promise<void> => page.getByRole('button', { name: 'Sign out' }).click();
  const schemeOf = (page: Page): Promise<string> =>
    page.evaluate<string>('getComputedStyle(document.documentElement).colorScheme');
  const backgroundOf = (page: Page): Promise<string> =>
    page.evaluate<string>('getComputedStyle(document.body).backgroundColor');

  soakIt('are those of one key: another key in the same browser has its own views and notifications', async () => {
    const page = await browser.open(`${service.url}/console/?q=mine`, { expectsRefusals: true });
    await signIn(page, 'ann');
    await page.getByRole('button', { name: 'Save this view' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Mine alone');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Mine alone' }).waitFor();
    await page.getByRole('link', { name: /^Inbox/ }).click();
    await page.getByLabel('Notify me').check();
    await signOut(page);
    await signIn(page, 'ben');
    expect(await page.getByLabel('Notify me').isChecked()).to.equal(false);
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(await page.getByText('Mine alone').count()).to.equal(0);
    await signOut(page);
    await signIn(page, 'ann');
    await page.getByText('Mine alone').waitFor();
  });

  soakIt('set the theme of the page, before its user has signed in too', async () => {
    const page = await browser.open(`${service.url}/console/inbox`, { expectsRefusals: true });
    await page.evaluate("localStorage.setItem('council.settings ann', JSON.stringify({ theme: 'dark' }))");
    const light = await backgroundOf(page);
    await signIn(page, 'ann');
    await untilTrue(async () => (await schemeOf(page)) === 'dark');
    expect(await backgroundOf(page)).to.not.equal(light);
    await signOut(page);
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await schemeOf(page)).to.equal('dark');
    await signIn(page, 'ben');
    await untilTrue(async () => (await schemeOf(page)) === 'light dark');
  });

  soakIt('are the defaults if what is stored is not a setting', async () => {
    const page = await browser.open(`${service.url}/console/inbox`, { expectsRefusals: true });
    for (const stored of ['null', '7', '[]', '{"theme":"blue","undo":1}', 'not JSON']) {
      await page.evaluate(`localStorage.setItem('council.settings ann', ${JSON.stringify(stored)})`);
      await signIn(page, 'ann');
      expect(await schemeOf(page), stored).to.equal('light dark');
      expect(await page.getByLabel('Notify me').isChecked(), stored).to.equal(false);
      await signOut(page);
    }
  });

  soakIt('switch single-letter shortcuts off and on', async () => {
    const page = await browser.open(`${service.url}/console/inbox`, { expectsRefusals: true });
    await signIn(page, 'ann');
    await page.getByText('Nothing waits for you').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts and decisions' }).getByLabel('Use these shortcuts').uncheck();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByLabel('Notify me').check();
    expect(await page.getByRole('dialog').count()).to.equal(0);
    await page.getByRole('button', { name: 'Shortcuts' }).click();
    await page.getByRole('dialog').getByLabel('Use these shortcuts').check();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts and decisions' }).waitFor();
  });
});
