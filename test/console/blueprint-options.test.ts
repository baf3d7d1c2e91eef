import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The options of a council in the editor', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  soakIt('turn God Mode on and off for programs that call it as a model', async () => {
    await council.blueprints.create({ id: 'poets', name: 'Poets', nodes: [{ id: 'write' }] });
    const page = await browser.open(`${service.url}/console/blueprints/poets`);
    const godMode = page.getByRole('checkbox', { name: 'God Mode when a program calls it as a model' });
    /** Saves, and returns the options of the new version. */
    const savedAs = async (version: number): Promise<unknown> => {
      await page.keyboard.press('Control+s');
      await page.getByText(`Saved as version ${version}`).waitFor();
      return (await council.blueprints.get('poets')).model_options;
    };
    expect(await godMode.isChecked()).to.equal(false);
    await godMode.check();
    expect(await savedAs(2)).to.deep.equal({ god_mode: true });
    await page.reload();
    await godMode.waitFor();
    expect(await godMode.isChecked()).to.equal(true);
    expect(await faultsIn(page)).to.deep.equal([]);
    await godMode.uncheck();
    expect(await savedAs(3)).to.equal(undefined);
  });

  soakIt('propose God Mode for every run with the first approval rule, and keep the choice against it', async () => {
    await council.blueprints.create({ id: 'board', name: 'Board', nodes: [{ id: 'write' }] });
    const page = await browser.open(`${service.url}/console/blueprints/board`);
    const [rule, always] = ['Approval rule for every pause', 'Pause every run for approval'].map((name) =>
      page.getByRole('checkbox', { name }),
    );
    if (rule === undefined || always === undefined) throw new Error('No checkboxes');
    const savedAs = async (version: number): Promise<unknown> => {
      await page.keyboard.press('Control+s');
      await page.getByText(`Saved as version ${version}`).waitFor();
      return (await council.blueprints.get('board')).god_mode;
    };
    expect(await always.isChecked()).to.equal(false);
    await page.getByText('Who approves').click();
    await rule.check();
    expect(await always.isChecked()).to.equal(true);
    expect(await savedAs(2)).to.equal('always');
    await always.uncheck();
    await page.getByText('Runs that start without God Mode ask no approver.').waitFor();
    expect(await savedAs(3)).to.equal('optional');
    await rule.uncheck();
    await page.getByText('Who approves').click();
    await rule.check();
    expect(await always.isChecked()).to.equal(false);
    expect(await faultsIn(page)).to.deep.equal([]);
  });
});
