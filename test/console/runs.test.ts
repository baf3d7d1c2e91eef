import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { copiedRuns } from '../bench/copied-runs.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { instantModel } from '../support/instant-model.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const RUNS = IS_SOAK ? 100_000 : 1_000;
/** The most rows that may be rendered at a time. */
const MAX_DRAWN = 80;

const line = (page: Page, topic: string) => page.locator('tr[data-line]').filter({ hasText: topic });

describeInBrowser('The first run', (browser) => {
  let service: RunningService;
  let model: ScriptedModel;

  beforeEach(async () => {
    model = scriptedModel(() => 'hold');
    service = await startService({ model });
  });
  afterEach(() => service.stop());

  it('starts on an empty service, and the list shows its progress to the end', async () => {
    const page = await browser.open(`${service.url}/console/`);
    await page.evaluate('globalThis.mark = 1');
    await page.getByRole('button', { name: /^Start the run/ }).click();
    await page.getByText('Enter a topic for the council.').waitFor();
    await page.getByRole('textbox', { name: 'Topic' }).fill('The sea');
    await page.getByRole('textbox', { name: 'Topic' }).press('Control+Enter');
    await page.waitForURL(/\/console\/runs\/[-0-9a-f]{36}$/);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Runs' }).click();
    await line(page, 'The sea').getByText('running').waitFor();
    await model.called(1);
    model.held[0]?.release('A draft of the sea');
    await model.called(2);
    model.held[0]?.release(JSON.stringify({ score: 9, feedback: 'Fine' }));
    await model.called(3);
    model.held[0]?.release('The sea, polished');
    const row = line(page, 'The sea');
    await row.getByText('completed').waitFor();
    await row.getByRole('cell', { name: '30 in 15 out cost not reported' }).waitFor();
    expect(await row.locator('.score').innerText()).to.equal('9');
    expect(await row.locator('.iterations').innerText()).to.equal('1');
    expect(await page.evaluate('globalThis.mark')).to.equal(1);
  });

  it('leads a new user to the first approval in God Mode', async () => {
    const page = await browser.open(`${service.url}/console/`);
    await page.getByRole('button', { name: 'Should our town build a public sauna?' }).click();
    await page.getByRole('button', { name: /Start the example council in God Mode/ }).click();
    await page.waitForURL(/\/console\/runs\/[-0-9a-f]{36}$/);
    const approve = page.getByRole('button', { name: /^Approve/ });
    await approve.waitFor();
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Runs' }).click();
    const row = line(page, 'public sauna');
    for (const text of ['waiting', 'Example council', 'God Mode']) await row.getByText(text, { exact: true }).waitFor();
    await row.getByText(/^for \d/).waitFor();
    await row.getByRole('link').click();
    await approve.click();
    await model.called(1);
    await page.goBack();
    await row.getByText('running').waitFor();
  });

  soakIt('does not navigate if the user has left the page while it starts', async () => {
    const page = await browser.open(`${service.url}/console/`);
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    await page.route('**/api/councils/run', async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole('textbox', { name: 'Topic' }).fill('The sea');
    await page.getByRole('button', { name: /^Start the run/ }).click();
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Inbox' }).click();
    await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
    const answered = page.waitForResponse('**/api/councils/run');
    goOn();
    // Does not wait for the end of the request, which the browser may report as aborted after a complete answer.
    await answered;
    // The page has processed the earlier answer when it gets the answer to a later request.
    await page.evaluate("fetch('/api/health').then((answer) => answer.text())");
    expect(new URL(page.url()).pathname).to.equal('/console/inbox');
  });

  soakIt('appears without a reload for a user who may not start runs', async () => {
    const open = new CouncilClient({ url: service.url });
    const { key } = await open.keys.add({ name: 'ann', scopes: ['admin', 'run', 'read'] });
    const ann = new CouncilClient({ url: service.url, key });
    const { key: reader } = await ann.keys.add({ name: 'rob', scopes: ['read'] });
    const page = await browser.open(`${service.url}/console/`, { expectsRefusals: true });
    await page.getByLabel('Key').fill(reader);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'No runs yet' }).waitFor();
    expect(await page.getByRole('button', { name: /start/i }).count()).to.equal(0);
    await ann.runs.start({ topic: 'The sea' });
    await line(page, 'The sea').getByText('ann').waitFor();
    expect(await page.getByRole('button', { name: /start/i }).count()).to.equal(0);
  });

  soakIt('shows a refusal at the topic field, and keeps the text', async () => {
    await new CouncilClient({ url: service.url }).runs.start({ topic: 'The sea' });
    const page = await browser.open(`${service.url}/console/`, { expectsRefusals: true });
    await page.getByRole('button', { name: 'Start a run' }).click();
    const topic = page.getByRole('dialog').getByRole('textbox', { name: 'Topic' });
    await topic.fill('x'.repeat(10_001));
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Start/ })
      .click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    expect(await topic.getAttribute('aria-invalid')).to.equal('true');
    expect(await topic.inputValue()).to.have.length(10_001);
    await topic.fill('The moon');
    await page.getByRole('dialog').getByLabel('Council').selectOption({ label: 'Example council' });
    await page.getByLabel('God Mode').check();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Start/ })
      .click();
    await page.waitForURL(/\/console\/runs\/[-0-9a-f]{36}$/);
    await page.goBack();
    await line(page, 'The moon').getByText('waiting').waitFor();
  });
});

describeInBrowser(`A list of ${RUNS} runs`, (browser) => {
  let dir: TempDir;
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    dir = tempDir();
    await copiedRuns(dir.path, { model: instantModel(), runs: RUNS });
    service = await startService({ dataDir: dir.path, eventStore: null, model: instantModel() });
    council = new CouncilClient({ url: service.url });
    // The service answers lists before it has folded all views.
    // The service refuses to count while it folds so many runs.
    await untilTrue(async () => (await council.runs.count().catch(() => null)) === RUNS);
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  const open = async (search = '', options = {}): Promise<Page> => {
    const page = await browser.open(`${service.url}/console/${search}`, options);
    await page.locator('tr[data-line]').first().waitFor();
    return page;
  };
  const total = (page: Page) => page.getByRole('heading', { level: 1 });

  it('loads pages while scrolling, and renders only visible rows', async () => {
    const page = await open();
    await total(page).getByText(RUNS.toLocaleString('en-US'), { exact: true }).waitFor();
    const last = page.locator(`tr[aria-rowindex="${RUNS + 1}"]`);
    let drawn = 0;
    while ((await last.count()) === 0) {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      drawn = Math.max(drawn, await page.locator('tr[data-line]').count());
    }
    expect(drawn).to.be.within(10, MAX_DRAWN);
    await page.evaluate('window.scrollTo(0, 0)');
    await page.locator('tr[aria-rowindex="2"]').waitFor();
    expect(await page.locator('tr[data-line]').count()).to.be.at.most(MAX_DRAWN);
  });

  soakIt('keeps its filters in the URL across a reload', async () => {
    const run = await council.runs.start({ topic: 'A lighthouse for the harbour' });
    await run.result();
    const page = await open();
    await page.getByLabel('Search').fill('lighthouse');
    await page.waitForURL(/q=lighthouse/);
    await page.getByLabel('Status').selectOption('completed');
    await page.getByText('More filters').click();
    await page.getByLabel('Score from').fill('7.5');
    await page.waitForURL(/status=completed.*min_score=7\.5/);
    await page.reload();
    await line(page, 'lighthouse').waitFor();
    await total(page).getByText('1', { exact: true }).waitFor();
    expect(await page.getByLabel('Search').inputValue()).to.equal('lighthouse');
    expect(await page.getByLabel('Status').inputValue()).to.equal('completed');
    expect(await page.getByLabel('Score from').inputValue()).to.equal('7.5');
    await page.getByLabel('Score from').fill('9.5');
    await page.getByRole('heading', { name: 'No run matches the filters' }).waitFor();
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.locator('tr[data-line]').first().waitFor();
    await page.waitForURL(({ search }) => search === '');
  });

  soakIt('saves views until the user removes them', async () => {
    const page = await open('?status=completed&sort=score');
    await page.getByRole('button', { name: 'Save this view' }).click();
    await page.getByLabel('Name').fill('The worst');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const views = page.getByRole('navigation', { name: 'Views' });
    await views.getByRole('link', { name: 'All' }).click();
    await page.waitForURL(`${service.url}/console/`);
    await page.reload();
    await views.getByRole('link', { name: 'The worst' }).click();
    await page.waitForURL(/status=completed&sort=score/);
    expect(await page.getByLabel('Order').inputValue()).to.equal('score');
    await page.getByRole('button', { name: 'Remove the view The worst' }).click();
    await page.reload();
    await views.getByRole('link', { name: 'Failed' }).waitFor();
    expect(await views.getByRole('link', { name: 'The worst' }).count()).to.equal(0);
  });

  soakIt('inserts new runs at the top, or shows their number if scrolled down', async () => {
    const page = await open();
    await (await council.runs.start({ topic: 'At the top' })).result();
    await line(page, 'At the top').getByText('completed').waitFor();
    expect(await line(page, 'At the top').getAttribute('aria-rowindex')).to.equal('2');
    await page.evaluate('window.scrollTo(0, 3000)');
    await page.locator('tr[aria-rowindex="50"]').waitFor();
    await council.runs.start({ topic: 'Unseen' });
    await page.getByRole('button', { name: '1 new run' }).click();
    await line(page, 'Unseen').waitFor();
    expect(await page.evaluate('window.scrollY')).to.equal(0);
  });

  soakIt('exports selected runs, and compares two of them', async () => {
    const page = await open();
    const boxes = page.getByRole('checkbox', { name: /^Select: / });
    await boxes.nth(0).check();
    const selected = page.getByRole('region', { name: 'Selected runs' });
    await selected.getByText('1 run selected').waitFor();
    expect(await page.getByRole('link', { name: 'Compare' }).count()).to.equal(0);
    await boxes.nth(1).check();
    const saved = page.waitForEvent('download');
    await selected.getByRole('button', { name: 'Export CSV' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).to.equal('runs.csv');
    const table = await readFile(await download.path(), 'utf8');
    expect(table.trim().split('\n')).to.have.length(3);
    await page.getByRole('checkbox', { name: 'Select all shown' }).check();
    await selected.getByText('100 runs selected').waitFor();
    await page.getByRole('checkbox', { name: 'Select all shown' }).uncheck();
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.waitForURL(/\/console\/compare\?a=[-0-9a-f]{36}&b=[-0-9a-f]{36}$/);
  });

  soakIt('sorts by the heads of its columns, which stay in sight, and counts runs by status', async () => {
    const page = await open();
    const head = page.getByRole('columnheader', { name: 'Score' });
    await head.getByRole('button').click();
    await page.waitForURL(/sort=-score/);
    expect(await head.getAttribute('aria-sort')).to.equal('descending');
    await head.getByRole('button').click();
    await page.waitForURL(/sort=score/);
    await page.locator('tr[data-line]').first().waitFor();
    expect((await page.locator('tr[data-line]').first().boundingBox())?.height).to.equal(40);
    await page.evaluate('window.scrollTo(0, 1500)');
    await untilTrue(async () => Math.abs((await head.boundingBox())?.y ?? 99) < 2);
    const { completed, outcomes } = await council.runs.counts({ trial: false });
    const views = page.getByRole('navigation', { name: 'Views' });
    await views.getByRole('link', { name: `Completed ${completed.toLocaleString('en')}`, exact: true }).waitFor();
    await views.getByRole('link', { name: `Failed ${outcomes.failed}`, exact: true }).waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt('leaves test runs out until the user asks for them, and finds runs of the built-in council', async () => {
    await (
      await council.runs.tryBlueprint({ topic: 'Only a test', blueprint: { name: 'T', nodes: [{ id: 'a' }] } })
    ).result();
    const page = await open('?q=only+a+test&trial=1');
    const row = line(page, 'Only a test');
    await row.getByText('Test', { exact: true }).waitFor();
    expect(await row.locator('mark').first().innerText()).to.match(/only|test/i);
    await page.getByRole('checkbox', { name: 'Show test runs' }).uncheck();
    await page.getByRole('heading', { name: 'No run matches the filters' }).waitFor();
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.getByLabel('Council', { exact: true }).selectOption({ label: 'Built-in' });
    await page.waitForURL(/blueprint_id=council/);
    await page.locator('tr[data-line]').first().waitFor();
  });

  soakIt('cancels all selected runs that have not ended', async () => {
    const nodes = [{ id: 'a' }];
    const { id } = await council.blueprints.create({ name: 'Waits', nodes, edges: [] });
    const runs = [1, 2].map((at) => council.runs.start({ topic: `To cancel ${at}`, blueprint: id, godMode: true }));
    const [one, two] = await Promise.all(runs);
    const page = await open(`?blueprint_id=${id}`);
    await line(page, 'To cancel 2').waitFor();
    await page.getByRole('checkbox', { name: 'Select all shown' }).check();
    await page.getByRole('button', { name: 'Cancel 2 runs' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel them' }).click();
    await page.getByText('Cancelled 2 runs').waitFor();
    expect([(await one?.status())?.status, (await two?.status())?.status]).to.deep.equal(['failed', 'failed']);
    await line(page, 'To cancel 2').getByText('cancelled', { exact: true }).waitFor();
  });

  if (IS_SOAK) {
    it('follows many events with less than half of a processor core', async () => {
      const page = await open();
      const devtools = await page.context().newCDPSession(page);
      await devtools.send('Performance.enable');
      const busyMs = async (): Promise<number> => {
        const { metrics } = await devtools.send('Performance.getMetrics');
        return 1_000 * (metrics.find(({ name }) => name === 'ThreadTime')?.value ?? NaN);
      };
      const before = await busyMs();
      const fromMs = performance.now();
      // As the list shows them: without test runs.
      const started = await council.runs.count({ trial: false });
      const runs = await Promise.all(
        Array.from({ length: 100 }, (_, index) => council.runs.start({ topic: `Storm ${index}` })),
      );
      await Promise.all(runs.map((run) => run.result()));
      // All visible runs are up to date.
      await total(page)
        .getByText((started + runs.length).toLocaleString('en-US'), { exact: true })
        .waitFor();
      await page.locator('tr[data-line]').filter({ hasNotText: 'completed' }).first().waitFor({ state: 'detached' });
      expect((await busyMs()) - before).to.be.below((performance.now() - fromMs) / 2);
    });
  }
});
