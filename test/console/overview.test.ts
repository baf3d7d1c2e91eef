import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { LOOKS, describeInBrowser, faultsIn, settled } from '../support/console-browser.js';
import type { LivedInService } from '../support/lived-in-service.js';
import { startLivedInService } from '../support/lived-in-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The overview', (browser) => {
  let town: LivedInService;

  before(async () => {
    town = await startLivedInService();
  });
  after(() => town.stop());

  it('shows runs by day and outcome, scores and cost by council, and what waits, with tables', async () => {
    const page = await browser.open(`${town.url}/console/nothing`, { expectsRefusals: true });
    await page.context().request.post(`${town.url}/api/session`, { data: { key: town.keys.ann } });
    await page.goto(`${town.url}/console/overview?days=365`);
    await settled(page);
    const waiting = page.getByRole('region', { name: 'Waiting for a decision' });
    await waiting.getByRole('link', { name: '2 runs' }).waitFor();
    const days = page.getByRole('region', { name: 'Runs by day', exact: true });
    expect(await days.locator('svg rect.completed').count()).to.be.above(0);
    await days.getByText('Show as a table').click();
    const sum = async (column: number): Promise<number> =>
      (await days.locator(`tbody td:nth-of-type(${column})`).allInnerTexts()).reduce(
        (all, text) => all + Number(text),
        0,
      );
    expect(
      [await sum(1), await sum(2), await sum(3), await sum(4)],
      'completed, rejected, cancelled, failed',
    ).to.deep.equal([7, 1, 1, 1]);
    const councils = page.getByRole('region', { name: 'Councils' });
    await councils.getByRole('rowheader', { name: 'Council of the town' }).waitFor();
    await councils
      .getByRole('img', { name: /^Scores by day: 20/ })
      .first()
      .waitFor();
    await page.getByRole('region', { name: 'Cost by model' }).getByRole('cell', { name: '$0' }).first().waitFor();
    // What every page shares is checked here in each look.
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    await page.getByRole('button', { name: '7 days' }).click();
    await page.waitForURL(/days=7/);
    await page.close();
  });

  soakIt('lists the council with the highest cost first, and whole months for every range', async () => {
    const service = await startService({
      model: { ...scriptedModel(), fullName: (name = 'scripted-1') => `scripted/${name}` },
      eventStore: null,
      prices: { 'scripted/scripted-1': { input_cost_per_token: 0.001, output_cost_per_token: 0.002 } },
    });
    try {
      const council = new CouncilClient({ url: service.url });
      const single = await council.blueprints.create({ name: 'One voice', nodes: [{ id: 'a' }] });
      const long = Array.from({ length: 6 }, (_, at) => ({ id: `n${at}` }));
      const edges = long.slice(1).map(({ id }, at) => ({ source: `n${at}`, target: id }));
      const many = await council.blueprints.create({ name: 'Six voices', nodes: long, edges });
      for (const { id } of [single, single, many]) {
        await (await council.runs.start({ topic: 'The sea', blueprint: id })).result();
      }
      const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
      const today = new Date();
      const first = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 11)).toISOString().slice(0, 10);
      const months = page.waitForRequest(new RegExp(`/overview\\?from=${first}`));
      await page.goto(`${service.url}/console/overview?days=7`);
      await months;
      const rows = page.getByRole('region', { name: 'Councils' }).getByRole('rowheader');
      await rows.nth(1).waitFor();
      expect(await rows.allInnerTexts()).to.deep.equal(['Six voices', 'One voice']);
      expect(await faultsIn(page)).to.deep.equal([]);
      await page.close();
    } finally {
      await service.stop();
    }
  });
});
