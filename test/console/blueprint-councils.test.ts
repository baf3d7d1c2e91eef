import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { LOOKS, describeInBrowser, faultsIn, overweight } from '../support/console-browser.js';
import { CHAPTER, report } from '../support/council-of-chapters.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const OUTLINE = '# Trees\n\n## Oaks\n\nThey are old.\n\n## Ashes\n';

describeInBrowser('A member that runs a council, in the editor', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  beforeEach(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
    await council.blueprints.create(CHAPTER);
    await council.blueprints.create(report());
  });
  afterEach(() => service.stop());

  const member = (page: Page, name: string) => page.locator('.graph-node').filter({ hasText: name });
  async function open(id: string, name: string, options = {}): Promise<Page> {
    const page = await browser.open(`${service.url}/console/blueprints/${id}`, options);
    await member(page, name).click();
    return page;
  }
  async function saved(page: Page, id: string) {
    await page.keyboard.press('Control+s');
    await page.getByText('Saved as version 2').waitFor();
    return await council.blueprints.get(id);
  }

  it('has the council that it runs, for which items, and with which topic', async () => {
    const page = await open('report', 'Edit');
    await member(page, 'chapters').getByText('Chapter', { exact: true }).waitFor();
    await page.getByLabel('Role').selectOption('council');
    await page
      .getByText(/names no council to run$/)
      .first()
      .waitFor();
    const choice = page.getByLabel('Council', { exact: true });
    expect(await choice.getAttribute('aria-invalid')).to.equal('true');
    expect(await choice.locator('option').allInnerTexts()).to.deep.equal(['Choose a saved council', 'Chapter']);
    await choice.selectOption('chapter');
    await member(page, 'Edit').getByText('Chapter', { exact: true }).waitFor();
    expect(await page.getByLabel('System prompt').count()).to.equal(0);
    await page.getByLabel('Runs', { exact: true }).selectOption('headings');
    await page.getByLabel('Topic of its runs').fill('{{index}}: {{item}}');
    await page.getByLabel('Runs at a time').fill('3');
    await page.getByLabel('When one of its runs fails').selectOption('skip');
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    const { nodes } = await saved(page, 'report');
    expect(nodes[2]).to.deep.include({
      ...{ type: 'council', council: 'chapter', for_each: 'headings', max_parallel: 3, on_error: 'skip' },
      topic: '{{index}}: {{item}}',
    });
  });

  it('shows the items that it would find in a sample', async () => {
    const page = await open('report', 'chapters');
    await page.getByText('Try it on a sample draft').click();
    const sample = page.getByLabel('Sample draft');
    await sample.fill('1. One\n2. Two');
    const found = page.getByRole('status').filter({ has: page.getByRole('list') });
    await found.getByText('2 runs:').waitFor();
    await page.getByLabel('Runs', { exact: true }).selectOption('headings');
    await page.getByText('No item: the draft stays as it is.').waitFor();
    await sample.fill(OUTLINE);
    await found.getByText('Ashes').waitFor();
    expect(await found.getByRole('listitem').allInnerTexts()).to.deep.equal(['Oaks', 'Ashes']);
    await page.getByLabel('Runs', { exact: true }).selectOption('json');
    await page.getByText('The draft is no JSON array: the run fails.').waitFor();
    await sample.fill(JSON.stringify(Array.from({ length: 201 }, String)));
    await page.getByText('201 items are more than 200: the run fails.').waitFor();
  });

  it('shows at its field that a council would contain itself, or does not exist', async () => {
    const page = await open('chapter', 'Write', { expectsRefusals: true });
    await page.getByLabel('Role').selectOption('council');
    await page.getByLabel('Council', { exact: true }).selectOption('report');
    const field = page.locator('.field').filter({ has: page.getByLabel('Council', { exact: true }) });
    await field.getByText('council "chapter" would contain itself').waitFor();
    await council.blueprints.delete('report');
    await page.getByLabel('Label').fill('Written');
    await field.getByText('No such council').waitFor();
  });
});
