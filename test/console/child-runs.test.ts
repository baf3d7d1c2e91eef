import { expect } from 'chai';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import type { Run, RunEvent } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { LOOKS, describeInBrowser, faultsIn, overweight } from '../support/console-browser.js';
import { CHAPTER, holding, report } from '../support/council-of-chapters.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

/** A chapter is written, then scored. */
const SCORED = {
  ...CHAPTER,
  nodes: [
    { id: 'write', label: 'Write' },
    { id: 'critic', label: 'Critic' },
  ],
  edges: [{ source: 'write', target: 'critic' }],
};

describeInBrowser('The runs of councils', (browser) => {
  const dir = tempDir();
  let service: RunningService;
  let council: CouncilClient;
  let model: ScriptedModel;

  beforeEach(async () => {
    const chapters = holding((material) => material === 'Two');
    model = scriptedModel((request, index) =>
      request.answer === 'critique' ? { text: '{"score": 9, "feedback": "Fine"}' } : chapters(request, index),
    );
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
    await council.blueprints.create(SCORED);
    await council.blueprints.create(report());
  });
  afterEach(() => service.stop());
  after(() => dir.remove());

  const open = (path: string, options = {}) => browser.open(`${service.url}/console/${path}`, options);
  const start = (): Promise<Run> => council.runs.start({ topic: 'Trees', blueprint: 'report' });
  const rowOf = (page: Page, title: string): Locator =>
    page.getByRole('list', { name: 'Runs of chapters' }).getByRole('listitem').filter({ hasText: title });
  const untilHeld = (): Promise<void> => model.called(6);

  async function idOf(run: Run, title: string): Promise<string> {
    for await (const event of run.events())
      if (event.type === 'ChildStarted' && event.data.title === title) return event.data.child;
    throw new Error(`There is no run for ${title}`);
  }

  it('are rows of their node with status, score, cost and link, while the draft grows', async () => {
    const run = await start();
    await untilHeld();
    const page = await open(`runs/${run.id}`);
    await page.getByText('2 of 3 runs ended').waitFor();
    await rowOf(page, 'Two').getByText('running').waitFor();
    await rowOf(page, 'One').getByText('completed').waitFor();
    await rowOf(page, 'One').getByText('score 9', { exact: true }).waitFor();
    const soFar = page.getByRole('region', { name: 'Draft of chapters so far' });
    expect(await soFar.innerText()).to.match(/so far: 2 of 3\s+One\s+<Trees\|One>\s+Three\s+<Trees\|Three>/i);
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    model.held[0]?.release('The second');
    await page.getByText('3 of 3 runs ended').waitFor();
    await page.getByRole('region', { name: 'Draft', exact: true }).getByText('The second').waitFor();
    expect(await soFar.count()).to.equal(0);
    await page.getByText('3 of 3 runs ended').click();
    await rowOf(page, 'Two').getByText('score 9', { exact: true }).waitFor();
    await rowOf(page, 'Two').getByRole('link', { name: 'Two' }).click();
    await page.waitForURL(`**/runs/${await idOf(run, 'Two')}?*`);
    // Its neighbours are the other runs of the council.
    await page.getByRole('navigation', { name: 'Other runs' }).getByRole('link').first().waitFor();
  });

  it('show the way from their parent, and cannot be cancelled alone', async () => {
    const run = await start();
    await untilHeld();
    const page = await open(`runs/${await idOf(run, 'Two')}`);
    const trail = page.getByRole('navigation', { name: 'Parent runs' });
    await trail.getByText('chapters › Two').waitFor();
    expect(await page.getByRole('button', { name: 'Fork here' }).count()).to.equal(1);
    expect(await page.getByRole('button', { name: 'Cancel the run' }).count()).to.equal(0);
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    await trail.getByRole('link', { name: 'Trees' }).click();
    await page.waitForURL(`**/runs/${run.id}`);
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click();
    await rowOf(page, 'Two').getByText('cancelled').waitFor();
  });

  it('that have ended before a fork are rows of the fork too', async () => {
    const run = await start();
    const ended: RunEvent[] = [];
    for await (const event of run.events()) {
      if (event.type === 'ChildEnded') ended.push(event);
      if (ended.length === 2) break;
    }
    const fork = await council.run(run.id).fork({ at: ended[1]?.seq ?? 0 });
    const page = await open(`runs/${fork.id}`);
    await page.getByText('2 of 3 runs ended').waitFor();
    expect(await rowOf(page, 'One').getByRole('link').getAttribute('href')).to.include(await idOf(run, 'One'));
    expect(await rowOf(page, 'Two').getByRole('link').getAttribute('href')).not.to.include(await idOf(run, 'Two'));
  });

  it('are in the list of their parent, and in that of all runs if the user asks for them', async () => {
    const run = await start();
    await untilHeld();
    const page = await open(`runs/${run.id}`);
    await page.getByRole('link', { name: 'All 3 runs in the list' }).click();
    const lines = page.locator('tbody tr[data-line]');
    await untilTrue(async () => (await lines.count()) === 3);
    expect(await page.getByLabel('Runs of the councils in run').inputValue()).to.equal(run.id);
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await untilTrue(async () => (await lines.count()) === 1);
    await page.getByText('More filters').click();
    await page.getByRole('checkbox', { name: 'Show runs of councils' }).check();
    await untilTrue(async () => (await lines.count()) === 4);
    for (const title of ['One', 'Two', 'Three']) await lines.getByText(`${title} · Trees`).waitFor();
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
  });

  it('name their parent when they wait for a decision', async () => {
    const run = await council.runs.start({ topic: 'Trees', blueprint: 'report', godMode: true });
    const waitingChild = async () => (await council.approvals.list()).find((each) => each.parent_run !== undefined);
    await untilTrue(async () => {
      await (await run.pause())?.approve();
      return (await waitingChild()) !== undefined;
    });
    const page = await open('inbox');
    const card = page.getByRole('article', { name: 'Trees' });
    await card.getByText(/chapters › (One|Two|Three)/).waitFor();
    const parents = card.getByRole('navigation', { name: 'Parent runs' });
    expect(await parents.getByRole('link', { name: 'Trees' }).getAttribute('href')).to.include(run.id);
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    const other = await open(`runs/${run.id}`);
    await rowOf(other, 'One').getByText('waiting').waitFor();
  });

  it('that have not ended do not keep their parent from being shared, whose file has them without links', async () => {
    const run = await start();
    await untilHeld();
    const page = await open(`runs/${run.id}`);
    await page.getByText('2 of 3 runs ended').waitFor();
    await page.getByRole('button', { name: 'Share' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Record (HTML)' }).click(),
    ]);
    const file = join(dir.path, 'run.html');
    await download.saveAs(file);
    const shared = await browser.open(pathToFileURL(file).href);
    await rowOf(shared, 'One').getByText('completed').waitFor();
    expect(await rowOf(shared, 'One').getByRole('link').count()).to.equal(0);
    await shared.getByText('so far: 2 of 3').waitFor();
  });

  it('are the result of their step, and stay as they were at earlier events', async () => {
    const run = await start();
    await untilHeld();
    const page = await open(`runs/${run.id}?tab=step&step=2`);
    await rowOf(page, 'One').getByText('completed').waitFor();
    const started = page.getByRole('slider', { name: 'Event shown' });
    for (let back = 0; back < 2; back += 1) await started.press('ArrowLeft');
    await rowOf(page, 'One').getByText('running').waitFor();
  });
});
