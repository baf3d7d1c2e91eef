import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { appendRecord } from '../support/console-records.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { RUN_ID } from '../support/given.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { councilOfMinds } from './council-of-minds.js';

const { events: EVENTS } = councilOfMinds();
const closedAt = EVENTS.findIndex(({ type }) => type === 'PanelClosed');

describeInBrowser('The deliberation of a run', (browser) => {
  const dir = tempDir();
  let service: RunningService;

  before(async () => {
    service = await startService();
    await appendRecord(service.context.log, EVENTS);
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  const open = (query = '', options = {}): Promise<Page> =>
    browser.open(`${service.url}/console/runs/${RUN_ID}${query}`, options);
  const sectionOf = (page: Page): Locator => page.getByRole('region', { name: 'Deliberation' });
  const memberOf = (place: Locator, group: string, name: string): Locator =>
    place.getByRole('list', { name: group }).locator(':scope > li').filter({ hasText: name });

  it('is one node in the graph that opens into its members, with their models, answers, errors and times', async () => {
    const page = await open();
    await page
      .getByRole('group', { name: 'Council graph' })
      .getByRole('button', { name: /^Panel/ })
      .click();
    const step = page.getByRole('tabpanel');
    await step.getByText('3 of 5 answered, 1 failed, 1 discarded').waitFor();
    const north = memberOf(step, 'Members of Panel', 'North');
    expect(await north.locator('summary').first().innerText()).to.match(/North\s+answered\s+sea\/large · 3\.0 s/);
    await north.locator('summary').first().press('Enter');
    await north.getByRole('heading', { name: 'The sea' }).waitFor();
    const moon = memberOf(step, 'Members of Panel', 'Moon');
    await moon.locator('summary').first().click();
    await moon.getByText('The model is ill').first().waitFor();
    await moon.getByText('Attempt 2').waitFor();
    const west = memberOf(step, 'Members of Panel', 'West');
    await west.locator('summary').first().click();
    await west.getByText('did not wait longer').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  it('shows a ranking as a table, with the place that each reviewer gave and the comments', async () => {
    const page = await open();
    const section = sectionOf(page);
    const table = section.getByRole('group', { name: 'Ranking of Peer review' });
    await table.waitFor();
    const rows = (await table.locator('tbody tr').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
    expect(rows).to.deep.equal([
      '1 South 1.33 North: 1 of 2 · East: 1 of 2 · West: 1 of 3',
      '2 North 0.33 East: 2 of 2 · South: 2 of 2 · West: 2 of 3',
      '3 East not kept 0.33 North: 2 of 2 · South: 1 of 2 · West: 3 of 3',
    ]);
    await section.getByText('South is the best.').first().waitFor();
    await section.getByText('Agreement is not defined: some answers were shown to more reviewers').waitFor();
    const meaning = section.getByText('Kendall’s W compares the orders of the reviewers');
    expect(await meaning.isVisible()).to.equal(false);
    await section.locator('summary[aria-label="What is Kendall’s W?"]').press('Enter');
    await meaning.waitFor();
  });

  it('shows an analysis as five lists with the labels of members, and the scores of a jury', async () => {
    const page = await open();
    const section = sectionOf(page);
    const lists = ['Consensus', 'Contradictions', 'Partial coverage', 'Unique insights', 'Blind spots'];
    for (const name of lists) await section.getByRole('region', { name, exact: true }).waitFor();
    const stances = await section.getByRole('region', { name: 'Contradictions' }).innerText();
    expect(stances).to.match(/(North|South): Eleven kilometres\s+(North|South): Nobody has measured it/);
    expect(await section.getByRole('region', { name: 'Blind spots' }).innerText()).to.match(/None$/);
    expect(await section.getByText('The judge saw no names').innerText()).to.match(/Response A was (North|South)/);
    const scores = section.getByRole('group', { name: 'Scores of Jury' }).last();
    expect(await scores.innerText()).to.match(/Juror A\s+9[\s\S]*Median of the scores\s+9/);
    await section.getByText('Krippendorff’s alpha 0.75').waitFor();
    await section.getByText('jury, step 13').click();
    await section.getByText('it compares rounds, and there is one so far').waitFor();
    expect(await page.innerText('body')).not.to.match(/confidence|certainty/i);
  });

  it('shows at every event what the members were doing then', async () => {
    const page = await open(`?at=${closedAt - 1}&tab=step&step=1`);
    const section = sectionOf(page);
    const states = async (): Promise<readonly string[]> =>
      (await section.getByRole('list', { name: 'Members of Panel' }).locator('.badge').allInnerTexts()).map((text) =>
        text.trim(),
      );
    await section.getByText('The quorum has answered.').waitFor();
    expect(await states()).to.deep.equal(['answered', 'answered', 'answered', 'running', 'failed']);
    expect(await section.getByText('Peer review').count()).to.equal(0);
    await page.getByRole('slider', { name: 'Event shown' }).press('ArrowRight');
    await section.getByText('discarded', { exact: true }).waitFor();
    expect(await states()).to.deep.equal(['answered', 'answered', 'answered', 'discarded', 'failed']);
  });

  it('has a lane in the timeline that opens into the lanes of its members', async () => {
    const page = await open();
    const timeline = page.getByRole('region', { name: 'Timeline' });
    const toggle = timeline.getByRole('button', { name: 'Members of Panel' });
    expect(await timeline.getByRole('group', { name: 'West' }).count()).to.equal(0);
    await toggle.press('Enter');
    await timeline
      .getByRole('group', { name: 'West' })
      .getByRole('button', { name: /discarded, 37 s/ })
      .click();
    const west = memberOf(page.getByRole('tabpanel'), 'Members of Panel', 'West');
    await west.getByText('did not wait longer').waitFor();
    expect(new URL(page.url()).searchParams.get('member')).to.equal('west');
    await toggle.click();
    await timeline.getByRole('group', { name: 'West' }).waitFor({ state: 'detached' });
  });

  it('is in a shared file too, offline', async () => {
    const page = await open();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Share' }).click(),
    ]);
    const file = join(dir.path, 'run.html');
    writeFileSync(file, readFileSync(await download.path(), 'utf8'));
    await page.context().setOffline(true);
    const offline = await browser.open(pathToFileURL(file).href, { context: page.context() });
    const section = sectionOf(offline);
    await section.getByRole('group', { name: 'Ranking of Peer review' }).waitFor();
    await section.getByRole('region', { name: 'Unique insights' }).waitFor();
    const north = memberOf(section, 'Members of Panel', 'North');
    await north.locator('summary').first().click();
    await north.getByRole('heading', { name: 'The sea' }).waitFor();
    await north.getByText('Hash of the prompt').waitFor();
    expect(await faultsIn(offline)).to.deep.equal([]);
  });
});
