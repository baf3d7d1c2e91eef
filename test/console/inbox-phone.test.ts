import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const PHONE = { width: 360, height: 740 };

const topicOf = (number: number): string => `Which of the long topics of this morning is number ${number}?`;

describeInBrowser('The inbox on a phone', (browser) => {
  let service: RunningService;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    const council = new CouncilClient({ url: service.url });
    const { id } = await council.blueprints.create({ name: 'Poets', nodes: [{ id: 'poet' }] });
    for (const number of [1, 2, 3, 4]) {
      const run = await council.runs.start({ topic: topicOf(number), blueprint: id, godMode: true });
      // The first one waits longest.
      await untilTrue(async () => (await run.pause()) !== null);
    }
  });
  after(() => service.stop());

  it('shows the cost of the next step without a tap', async () => {
    const page = await browser.open(`${service.url}/console/inbox`, PHONE);
    const card = page.getByRole('article');
    await card.getByText('This step').waitFor();
    await card.getByText(/at most .* tokens/).waitFor();
    expect(await card.getByText('Prompt that is sent').isVisible()).to.equal(false);
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.close();
  });

  soakIt('leaves most of the page free while three decisions can be undone', async () => {
    const page = await browser.open(`${service.url}/console/nothing`, { ...PHONE, expectsRefusals: true });
    await page.clock.install();
    await page.goto(`${service.url}/console/inbox`);
    const card = (topic: string) => page.getByRole('article', { name: topic });
    await card(topicOf(1)).waitFor();
    await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 1_000);
    for (const number of [1, 2, 3]) {
      await card(topicOf(number)).getByRole('button', { name: 'Approve' }).click();
      // A decided card stays for a moment.
      await page.clock.runFor(300);
      await card(topicOf(number + 1)).waitFor();
    }
    expect(await page.getByRole('button', { name: 'Undo' }).count()).to.equal(3);
    const covered = (await page.locator('.toasts').boundingBox())?.height;
    expect(covered).to.be.below(740 / 3);
    await page.getByRole('button', { name: 'Undo' }).first().click();
    await page
      .getByRole('navigation', { name: 'Waiting runs' })
      .getByRole('button', { name: topicOf(1) })
      .waitFor();
    await page.close();
  });
});
