import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/console-browser.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describeInBrowser('A newcomer', (browser) => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  /** Clicks what can be read. */
  const follow = (page: Page, words: string): Promise<void> =>
    page.getByText(words).filter({ visible: true }).first().click();

  it('comes from the empty service to the first approved pause by what can be read alone', async () => {
    const page = await browser.open(service.url);
    await follow(page, 'Should our town build a public sauna?');
    await follow(page, 'Start the example council');
    await page.getByRole('heading', { name: 'before writer' }).waitFor();
    await follow(page, 'Inbox');
    await page.getByText('1 run, longest wait first').waitFor();
    await page.getByText('next: writer').waitFor();
    await follow(page, 'Approve');
    await page.getByText('next: critic').waitFor();
    // The offline model says what it is, and the draft is there to be read before the next decision.
    await page
      .locator('article')
      .getByText(/offline/i)
      .first()
      .waitFor();
    const rest = restClient(service.url);
    const [waiting, ...others] = rest.read(await rest.get('/api/approvals'), 200, 'approval-list.json');
    expect(waiting).to.deep.include({ next_nodes: ['critic'], iteration_count: 1 });
    expect(others).to.deep.equal([]);
  });
});
