import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The console', (browser) => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  soakIt('navigates without page loads, and opens each page directly', async () => {
    const page = await browser.open(`${service.url}/console/`);
    await page.evaluate('globalThis.mark = 1');
    for (const place of ['Inbox', 'Councils', 'Documents', 'Runs']) {
      await page.getByRole('navigation').getByRole('link', { name: place, exact: true }).click();
      await page.getByRole('heading', { level: 1, name: place }).waitFor();
      await untilTrue(async () => (await page.title()) === `${place} · Council`);
    }
    expect(await page.evaluate('globalThis.mark')).to.equal(1);
    await page.goto(`${service.url}/console/documents`);
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    expect(await page.getByRole('main').count()).to.equal(1);
  });

  soakIt('moves the focus to the heading of each page, and Back to the place where the user was', async () => {
    const { runs } = new CouncilClient({ url: service.url });
    for (let at = 1; at <= 40; at += 1) await runs.start({ topic: `The sea, part ${at}` });
    const page = await browser.open(`${service.url}/console/`);
    const link = page.getByRole('link', { name: 'The sea, part 3', exact: true });
    await link.scrollIntoViewIfNeeded();
    const y = await page.evaluate<number>('scrollY');
    expect(y).to.be.above(100);
    await link.click();
    const heading = page.getByRole('heading', { level: 1, name: 'The sea, part 3' });
    await heading.waitFor();
    await untilTrue(() => page.evaluate<boolean>("document.activeElement === document.querySelector('main h1')"));
    expect(await page.evaluate('scrollY')).to.equal(0);
    await untilTrue(async () => (await page.title()) === 'The sea, part 3 · Run · Council');
    await page.goBack();
    await link.waitFor();
    await untilTrue(async () => Math.abs((await page.evaluate<number>('scrollY')) - y) < 2);
    await page.close();
  });

  it('says on every page that no language model is asked, while that is so', async () => {
    const page = await browser.open(`${service.url}/console/inbox`);
    await page.getByText('Offline model: no language model is asked').waitFor();
    await page.close();
  });

  it('finds runs, councils, documents and pages with Ctrl K', async () => {
    const client = new CouncilClient({ url: service.url });
    const run = await client.runs.start({ topic: 'A lighthouse for the island' });
    const nodes = [{ id: 'keeper', label: 'Keeper' }];
    await client.blueprints.create({ name: 'Keepers of the light', nodes, edges: [] });
    const page = await browser.open(`${service.url}/console/documents`);
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    await page.keyboard.press('Control+k');
    const search = page.getByRole('combobox', { name: 'Search runs, councils, documents and pages' });
    await search.waitFor();
    await page.keyboard.type('inbo');
    await page.getByRole('option', { name: 'Inbox' }).waitFor();
    await search.fill('island ligh');
    await page.getByRole('option', { name: 'A lighthouse for the island' }).waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await search.press('ArrowDown');
    await search.press('ArrowUp');
    await search.press('Enter');
    await page.waitForURL(`${service.url}/console/runs/${run.id}`);
    await page.keyboard.press('Control+k');
    await search.fill('keepers');
    await page.getByRole('option', { name: /^Keepers/ }).click();
    await page.waitForURL(/\/console\/blueprints\/./);
    await page.keyboard.press('Control+k');
    await search.fill('start');
    await page.getByRole('option', { name: 'Start a run' }).click();
    await page.getByRole('dialog', { name: 'Start a run' }).waitFor();
    await page.close();
  });

  it('goes where the typed words lead, also if Enter comes before their search', async () => {
    const run = await new CouncilClient({ url: service.url }).runs.start({ topic: 'A harbour for the mainland' });
    const page = await browser.open(`${service.url}/console/documents`);
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    await page.keyboard.press('Control+k');
    // Before the words are searched, the first entry starts a run.
    await page.getByRole('option', { name: 'Start a run' }).waitFor();
    await page.getByRole('combobox').fill('mainland harb');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${service.url}/console/runs/${run.id}`);
  });

  soakIt('says that the session has ended if the key was revoked, and not after the user signed out', async () => {
    const locked = await startService();
    try {
      const { key } = await new CouncilClient({ url: locked.url }).keys.add({ name: 'ann', scopes: ['admin', 'read'] });
      const ann = new CouncilClient({ url: locked.url, key });
      const ben = await ann.keys.add({ name: 'ben', scopes: ['read', 'approve'] });
      const page = await browser.open(`${locked.url}/console/inbox`, { expectsRefusals: true });
      const ended = page.getByText('The session of ben has ended');
      const signIn = async (): Promise<void> => {
        await page.getByLabel('Key').fill(ben.key);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
      };
      await signIn();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Key').waitFor();
      expect(await ended.count()).to.equal(0);
      await signIn();
      await ann.keys.revoke('ben');
      await ended.waitFor();
    } finally {
      await locked.stop();
    }
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
