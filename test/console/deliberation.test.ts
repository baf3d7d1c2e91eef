import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import type { LanguageModel } from '../../src/models/port.js';
import { appendRecord } from '../support/console-records.js';
import { describeInBrowser, faultsIn, overweight } from '../support/console-browser.js';
import { RUN_ID } from '../support/given.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { councilOfMinds } from './council-of-minds.js';
import { soakIt } from '../support/soak.js';

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
    const page = await open('?tab=graph');
    await page
      .getByRole('group', { name: 'Council' })
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
    expect([...(await faultsIn(page)), ...(await overweight(page))]).to.deep.equal([]);
  });

  soakIt('shows a ranking as a table, with the place that each reviewer gave and the comments', async () => {
    const page = await open('?tab=deliberation');
    const section = sectionOf(page);
    const table = section.getByRole('group', { name: 'Ranking of Peer review' });
    await table.waitFor();
    const rows = await Promise.all(
      (await table.locator('tbody tr').all()).map(async (row) => {
        const cells = await row.locator('> :is(td, th):not(:has(li))').allInnerTexts();
        return [...cells, (await row.getByRole('listitem').allInnerTexts()).join(', ')];
      }),
    );
    expect(rows).to.deep.equal([
      ['1', 'South', '1.33', 'North: 1 of 2, East: 1 of 2, West: 1 of 3'],
      ['2', 'North', '0.33', 'East: 2 of 2, South: 2 of 2, West: 2 of 3'],
      ['3', 'East not kept', '0.33', 'North: 2 of 2, South: 1 of 2, West: 3 of 3'],
    ]);
    await section.getByText('I like South best.').first().waitFor();
    await section.getByText('Agreement is not defined: some answers were shown to more reviewers').waitFor();
    const meaning = section.getByText('Kendall’s W compares the orders of the reviewers');
    expect(await meaning.isVisible()).to.equal(false);
    await section.locator('summary[aria-label="What is Kendall’s W?"]').press('Enter');
    await meaning.waitFor();
  });

  soakIt('shows an analysis as five lists with the labels of members, and the scores of a jury', async () => {
    const page = await open('?tab=deliberation');
    const section = sectionOf(page);
    const lists = ['Consensus', 'Contradictions', 'Partial coverage', 'Unique insights', 'Blind spots'];
    for (const name of lists) await section.getByRole('region', { name, exact: true }).waitFor();
    const agreed = await section.getByRole('region', { name: 'Consensus' }).innerText();
    expect(agreed).to.match(/(North and South|South and North) name its colour, Response Z does not/);
    const stances = await section.getByRole('region', { name: 'Contradictions' }).innerText();
    expect(stances).to.match(/(North|South): Eleven kilometres\s+(North|South): Nobody has measured it/);
    expect(await section.getByRole('region', { name: 'Blind spots' }).innerText()).to.match(/None$/);
    expect(await section.getByText('The judge saw no names').innerText()).to.match(/Response A was (North|South)/);
    const scores = section.getByRole('group', { name: 'Scores of Jury' }).last();
    expect(await scores.innerText()).to.match(/Juror A\s+9[\s\S]*Median of the scores\s+9/);
    await section.getByText('Krippendorff’s alpha 0.75').waitFor();
    await section.getByText('jury, step 13').click();
    await section.getByText('it compares rounds, and only one has several scores').waitFor();
    expect(await page.innerText('body')).not.to.match(/confidence|certainty/i);
  });

  soakIt('shows at every event what the members were doing then', async () => {
    const page = await open(`?at=${closedAt - 1}&tab=deliberation`);
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

  soakIt('has labels in events and in a comparison, not the letters that reviewers saw', async () => {
    const page = await open('?tab=events');
    const ranked = page.getByRole('list', { name: 'Events' }).getByText('of Peer review ranked the answers').first();
    const { seq } = EVENTS.find(({ type, data }) => type === 'NodeCompleted' && 'ranking' in data.output) ?? {
      seq: -1,
    };
    await page.goto(`${service.url}/console/runs/${RUN_ID}?tab=events&at=${seq}`);
    expect(await ranked.innerText()).to.match(
      /^(North|East|South|West) of Peer review ranked the answers: (North|East|South), then (North|East|South)/,
    );
    await page.goto(`${service.url}/console/compare?a=${RUN_ID}&b=${RUN_ID}`);
    await page.getByRole('button', { name: /steps equal$/ }).click();
    const judge = page.getByRole('article', { name: /^Judge/ });
    await judge.getByText('Analysis').click();
    await judge.getByText('South: Eleven kilometres').or(judge.getByText('North: Eleven kilometres')).waitFor();
    expect(await judge.innerText()).to.not.include('"response"');
  });

  soakIt('has a lane in the timeline that opens into the lanes of its members', async () => {
    const page = await open('?tab=timeline');
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

  soakIt('is in a shared file too, offline', async () => {
    const page = await open();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page
        .getByRole('button', { name: 'Share' })
        .click()
        .then(() => page.getByRole('button', { name: 'Record (HTML)' }).click()),
    ]);
    const file = join(dir.path, 'run.html');
    writeFileSync(file, readFileSync(await download.path(), 'utf8'));
    await page.context().setOffline(true);
    const offline = await browser.open(pathToFileURL(file).href, { context: page.context() });
    await offline.getByRole('tab', { name: 'Deliberation' }).click();
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

describeInBrowser('A panel at work', (browser) => {
  const held = new Map<string, () => void>();
  let service: RunningService;
  let council: CouncilClient;

  /** Each member says its model, and the rest when the test releases it. */
  const model: LanguageModel = {
    ...scriptedModel(),
    async ask(request, call) {
      const { model: name = '' } = request;
      request.onToken?.(`I am ${name}`);
      await new Promise<void>((resolve) => {
        held.set(name, resolve);
        call.signal.addEventListener('abort', () => resolve());
      });
      request.onToken?.(' and done.');
      return { text: `I am ${name} and done.`, usage: { inputTokens: 1, outputTokens: 1 } };
    },
  };

  before(async () => {
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  soakIt('shows what each member writes, apart from the others', async () => {
    const members = ['sea', 'land'].map((name) => ({ id: name, label: `The ${name}`, model: name }));
    const blueprint = await council.blueprints.create({
      name: 'Pair',
      nodes: [
        { id: 'plan', label: 'Plan', model: 'first' },
        { id: 'panel', label: 'Panel', type: 'panel', members },
      ],
      edges: [{ source: 'plan', target: 'panel' }],
    });
    const run = await council.runs.start({ topic: 'The sea', blueprint });
    await untilTrue(() => held.has('first'));
    const page = await browser.open(`${service.url}/console/documents`);
    const isFollowed = new Promise((resolve) =>
      page.once('websocket', (socket) => socket.once('framereceived', resolve)),
    );
    await page.goto(`${service.url}/console/runs/${run.id}`);
    await isFollowed;
    held.get('first')?.();
    for (const name of ['sea', 'land']) {
      const writing = page.getByRole('region', { name: `The ${name} of Panel is writing` });
      await writing.getByText(`I am ${name}`, { exact: true }).waitFor();
    }
    await page.getByRole('tab', { name: 'Deliberation' }).click();
    const section = page.getByRole('region', { name: 'Deliberation' });
    const sea = section.getByRole('list', { name: 'Members of Panel' }).getByRole('listitem').first();
    await sea.locator('summary').first().click();
    await sea.getByRole('region', { name: 'The sea is writing' }).getByText('I am sea').waitFor();
    held.get('sea')?.();
    await sea.getByText('answered', { exact: true }).waitFor();
    await sea.getByText('I am sea and done.').waitFor();
    await page.getByRole('tab', { name: 'Draft' }).click();
    await page.getByRole('region', { name: 'The land of Panel is writing' }).waitFor();
    expect(await page.getByRole('region', { name: 'The sea of Panel is writing' }).count()).to.equal(0);
    held.get('land')?.();
    expect(await run.result()).to.include({ status: 'completed' });
    await page.getByRole('tab', { name: 'Deliberation' }).click();
    await section.getByText('2 of 2 answered').waitFor();
  });
});
