import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn, settled } from '../support/console-browser.js';
import type { LivedInService } from '../support/lived-in-service.js';
import { startLivedInService } from '../support/lived-in-service.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The list of runs, read by a person', (browser) => {
  let town: LivedInService;

  before(async () => {
    town = await startLivedInService();
  });
  after(() => town.stop());

  async function openAs(key: string, search: string, width = 1280): Promise<Page> {
    const page = await browser.open(`${town.url}/console/nothing`, { expectsRefusals: true, width });
    await page.context().request.post(`${town.url}/api/session`, { data: { key } });
    await page.goto(`${town.url}/console/${search}`);
    await settled(page);
    return page;
  }

  soakIt('exports all runs that pass the filters, selected or not', async () => {
    const page = await openAs(town.keys.eve, '?status=completed');
    const council = new CouncilClient({ url: town.url, key: town.keys.ann });
    const { completed } = await council.runs.counts({ trial: false });
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const [, ...rows] = (await readFile(await (await saved).path(), 'utf8')).trim().split('\n');
    expect(rows).to.have.length(completed);
    expect(rows.every((row) => row.includes('completed'))).to.equal(true);
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.close();
  });

  soakIt('shows why a run failed in the words of its page, as wide as its topic', async () => {
    const page = await openAs(town.keys.ann, '?outcome=failed');
    const row = page.locator('tr[data-line]').filter({ hasText: 'Night buses' });
    const reason = row.locator('.topic .reason');
    expect(await reason.innerText()).to.match(/^Cannot run the council/);
    expect((await reason.boundingBox())?.width ?? 0).to.be.above(300);
    expect(await row.locator('td.status').innerText()).to.equal('failed');
    expect((await row.boundingBox())?.height).to.equal(40);
    await page.close();
  });

  for (const width of [1280, 360]) {
    it(`shows the found word of a draft without Markdown, ${width} px wide`, async () => {
      const page = await openAs(town.keys.ann, '?q=handful', width);
      const found = page.locator('tr[data-line] .excerpt').first();
      const text = await found.innerText();
      expect(text).to.match(/^…\S/);
      expect(text).not.to.match(/#|\*\*/);
      const [line, word] = [await found.boundingBox(), await found.locator('mark').boundingBox()];
      const endOf = (box: typeof line): number => (box?.x ?? NaN) + (box?.width ?? NaN);
      expect(endOf(word), text).to.be.at.most(endOf(line));
      await page.close();
    });
  }
});
