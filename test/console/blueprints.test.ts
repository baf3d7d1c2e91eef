import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, overflows, seriousFaults } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const HOSTILE = '<img src=x onerror="document.title=1"> & "quotes" \u202Eevil';

describeInBrowser('The list of blueprints', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
    await council.blueprints.create({ id: 'pair', name: 'Pair', nodes: [{ id: 'a' }, { id: 'b' }] });
    await council.blueprints.create({ name: HOSTILE, nodes: [{ id: 'a' }] });
  });
  after(() => service.stop());

  it('starts a run of one, and goes to it', async () => {
    const page = await browser.open(`${service.url}/console/blueprints?q=pair`);
    await page.getByRole('button', { name: 'Start a run of Pair' }).click();
    await page.getByLabel('Topic').fill('The sea');
    await page.getByLabel('God Mode').check();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.waitForURL(/\/console\/runs\/[0-9a-f-]{36}/);
    const [, id = ''] = /runs\/([0-9a-f-]{36})/.exec(page.url()) ?? [];
    const { blueprint_id: blueprint, execution_mode: mode } = await council.run(id).record();
    expect([blueprint, mode]).to.deep.equal(['pair', 'god-mode']);
  });

  it('deletes one only when asked twice', async () => {
    await council.blueprints.create({ id: 'gone', name: 'Soon gone', nodes: [{ id: 'a' }] });
    const page = await browser.open(`${service.url}/console/blueprints`);
    const remove = page.getByRole('button', { name: 'Delete Soon gone' });
    await remove.click();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await remove.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('“Soon gone” is deleted').waitFor();
    expect(await remove.count()).to.equal(0);
    expect(await page.getByRole('link', { name: 'Pair', exact: true }).count()).to.equal(1);
  });

  for (const [what, options] of [
    ['in the light', {}],
    ['in the dark, on a phone', { isDark: true, width: 360 }],
  ] as const) {
    it(`shows hostile names as text and has nothing serious against it, ${what}`, async () => {
      const page = await browser.open(`${service.url}/console/blueprints`, options);
      await page.getByRole('link', { name: HOSTILE }).first().waitFor();
      expect(await seriousFaults(page)).to.deep.equal([]);
      expect(await overflows(page)).to.equal(false);
    });
  }
});
