import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Download, Page } from 'playwright-core';
import type { Run } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { present } from '../../src/system/element.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { LivedInService } from '../support/lived-in-service.js';
import { startLivedInService } from '../support/lived-in-service.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { unzipped } from '../support/unzipped.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const SENTENCE = 'Ships carry most goods, and the harbour was last dredged in the year 1998. ';
const DRAFT = `# A plan for the harbour

${SENTENCE.repeat(4)}

## What it costs

| Item | Share |
|------|------:|
| Quay wall | 40 % |

### Before the work begins

Ask the **fishers**.`;

/** A critic whose own threshold is 6. */
const COUNCIL = {
  name: 'Harbour council',
  nodes: [
    { id: 'writer_1', label: 'Author' },
    { id: 'critic_1', label: 'Pilot', type: 'critic' as const },
    { id: 'editor_1', label: 'Editor' },
  ],
  edges: [
    { source: 'writer_1', target: 'critic_1' },
    { source: 'critic_1', target: 'writer_1', type: 'conditional' as const, condition: 'score < 6' },
    { source: 'critic_1', target: 'editor_1', type: 'conditional' as const, condition: 'score >= 6' },
  ],
};

describeInBrowser('The result of a run', (browser) => {
  let service: RunningService;
  let council: CouncilClient;
  let run: Run;

  before(async () => {
    let critiques = 0;
    const model = scriptedModel(({ answer, promptInput: { label } }) => {
      if (answer !== 'critique') return { text: DRAFT };
      if (label === 'Pilot') critiques += 1;
      return { text: JSON.stringify({ score: critiques === 1 ? 5 : 7, feedback: 'More of the **sea**.' }) };
    });
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
    await (await council.runs.start({ topic: 'An older one' })).result();
    const blueprint = await council.blueprints.create(COUNCIL);
    run = await council.runs.start({ topic: 'The harbour', blueprint });
    await run.result();
    await (await council.runs.start({ topic: 'A newer one' })).result();
  });
  after(() => service.stop());

  const open = (query = '', options = {}): Promise<Page> =>
    browser.open(`${service.url}/console/runs/${run.id}${query}`, options);

  soakIt('is a document of about 70 characters a line, with headings that differ in size', async () => {
    const page = await open();
    const draft = page.getByRole('region', { name: 'Draft' });
    await draft.getByRole('heading', { level: 3, name: 'A plan for the harbour' }).waitFor();
    const sizes = await page.evaluate<number[]>(
      "['h3', 'h4', 'h5', 'p'].map((tag) => parseFloat(getComputedStyle(document.querySelector('.prose ' + tag)).fontSize))",
    );
    expect(sizes).to.deep.equal(sizes.toSorted((a, b) => b - a));
    expect(new Set(sizes.slice(0, 3)).size).to.equal(3);
    const signs = await page.evaluate<number>(`(() => {
      const text = document.querySelector('.prose p').firstChild;
      const range = document.createRange();
      for (let end = 1; end <= text.length; end += 1) {
        range.setStart(text, 0);
        range.setEnd(text, end);
        if (range.getClientRects().length > 1) return end - 1;
      }
    })()`);
    expect(signs, 'characters in the first line').to.be.within(55, 85);
    await draft.getByRole('cell', { name: 'Quay wall' }).waitFor();
    expect(await page.title()).to.equal('The harbour · Run · Council');
  });

  soakIt('is copied as Markdown and as rich text, and other copy buttons name what they copy', async () => {
    const page = await open();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('cell', { name: 'Quay wall' }).waitFor();
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const read = (type: string): Promise<string> =>
      page.evaluate<string>(
        `navigator.clipboard.read().then(([item]) => item.getType('${type}')).then((blob) => blob.text())`,
      );
    expect(await read('text/plain')).to.equal(DRAFT);
    const html = await read('text/html');
    expect(html).to.include('<h1>A plan for the harbour</h1>').and.to.include('<strong>fishers</strong>');
    expect(html).to.match(/<table border="1">.*<td[^>]*>Quay wall<\/td>/s);
    const { head_hash: hash } = await run.verify();
    for (const [name, text] of [
      ['Run id', run.id],
      ['Head hash', hash],
    ] as const) {
      await page.getByRole('button', { name: `${name}: copy` }).click();
      await page.getByText('Copied').first().waitFor();
      expect(await read('text/plain')).to.equal(text);
    }
  });

  soakIt('is copied too where the browser gives a page no clipboard', async () => {
    const page = await browser.open(`${service.url}/console/documents`);
    await page.context().grantPermissions(['clipboard-read']);
    await page.context().addInitScript(`{
      const { clipboard } = navigator;
      globalThis.reader = clipboard;
      delete Navigator.prototype.clipboard;
    }`);
    await page.goto(`${service.url}/console/runs/${run.id}`);
    await page.getByRole('cell', { name: 'Quay wall' }).waitFor();
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('reader.readText()')).to.equal(DRAFT);
  });

  it('is saved as Markdown and as a Word document, and shared as a record, a draft or events', async () => {
    const page = await open();
    const [md, docx] = [await saved(page, 'Download', 'Markdown'), await saved(page, 'Download', 'Word')];
    expect(md.suggestedFilename()).to.equal('The harbour.md');
    expect(await textOf(md)).to.equal(DRAFT);
    expect(docx.suggestedFilename()).to.equal('The harbour.docx');
    expect(
      readFileSync(await docx.path())
        .subarray(0, 2)
        .toString(),
    ).to.equal('PK');
    expect(await textOf(await saved(page, 'Share', 'Draft'))).to.equal(DRAFT);
    const events = await saved(page, 'Share', 'Events');
    expect(events.suggestedFilename()).to.equal(`run-${run.id}.ndjson`);
    const headers = { Accept: 'application/x-ndjson' };
    expect(await textOf(events)).to.equal(
      await (await fetch(`${service.url}/api/runs/${run.id}/events`, { headers })).text(),
    );
    expect(await textOf(await saved(page, 'Share', 'Record'))).to.match(/^<!doctype html>/);
    await page.getByRole('button', { name: 'Share' }).click();
    await page.getByText('Every recorded event with its hash').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Every recorded event with its hash').waitFor({ state: 'detached' });
  });

  soakIt('is printed with nothing but its title and its draft, and the title is the largest', async () => {
    const page = await open('', { isDark: true });
    await page.getByRole('cell', { name: 'Quay wall' }).waitFor();
    await page.emulateMedia({ media: 'print' });
    const text = (await page.innerText('body')).trim();
    expect(text)
      .to.match(/^The harbour\s+A plan for the harbour/)
      .and.to.match(/Ask the fishers\.$/);
    expect(await page.evaluate('getComputedStyle(document.body).color')).to.equal('rgb(28, 29, 34)');
    const sizeOf = (selector: string): Promise<number> =>
      page.evaluate(`parseFloat(getComputedStyle(document.querySelector('${selector}')).fontSize)`);
    expect(await sizeOf('h1')).to.be.above(await sizeOf('.prose h3'));
  });

  soakIt('stands in two ranks of views, each at its own URL, and old URLs still open their view', async () => {
    const page = await open();
    const tabs = async (): Promise<readonly string[]> =>
      (await page.getByRole('tab').allInnerTexts()).map((text) => text.replace(/\d+$/, '').trim());
    await page.getByRole('tab', { name: 'Draft' }).waitFor();
    expect(await tabs()).to.deep.equal(['Draft', 'Changes', 'Feedback', 'Deliberation', 'Sources']);
    await page.getByRole('button', { name: 'Trace' }).click();
    expect(await tabs()).to.deep.equal(['Graph', 'Timeline', 'Steps', 'Events', 'State']);
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.waitForURL('**?tab=events');
    await page.getByRole('button', { name: 'Result' }).click();
    await page.getByRole('cell', { name: 'Quay wall' }).waitFor();
    await page.getByRole('button', { name: 'Trace' }).click();
    await page.getByRole('list', { name: 'Events' }).waitFor();
    for (const [query, name] of [
      ['?view=ran', 'Graph'],
      ['?step=2', 'Steps'],
      ['?tab=step&step=2', 'Steps'],
      ['?at=3', 'Draft'],
      ['?tab=state', 'State'],
    ] as const) {
      await page.goto(`${service.url}/console/runs/${run.id}${query}`);
      await page.getByRole('tab', { name, selected: true }).waitFor();
    }
  });

  soakIt('has a thin line over the events that opens when it is touched, and replays the run', async () => {
    const page = await open();
    const line = page.getByRole('region', { name: 'Event navigation' });
    const slider = page.getByRole('slider', { name: 'Event shown' });
    await slider.waitFor();
    const { height: thin } = present(await line.boundingBox(), 'line');
    expect(thin).to.be.below(44);
    expect(await line.getByRole('button', { name: 'Next event' }).isVisible()).to.equal(false);
    await slider.focus();
    await line.getByRole('button', { name: 'Previous event' }).waitFor();
    await page.keyboard.press('Home');
    await page.getByText('There is no draft yet').waitFor();
    await page.clock.install();
    await line.getByRole('button', { name: 'Play the events' }).click();
    await page.clock.runFor(1_300);
    expect(await slider.inputValue()).to.equal('2');
    await line.getByRole('button', { name: 'Pause the replay' }).click();
    await page.clock.runFor(5_000);
    expect(await slider.inputValue()).to.equal('2');
    await line.getByRole('button', { name: 'Play the events' }).click();
    await page.clock.runFor(60_000);
    await page.getByText('Final draft', { exact: true }).waitFor();
    await line.getByRole('button', { name: 'Play the events' }).waitFor();
    expect(await slider.inputValue()).to.equal(await slider.getAttribute('max'));
  });

  soakIt('counts events and drafts the same everywhere, and takes the threshold of its critic', async () => {
    const page = await open('?tab=events');
    const { events } = await run.verify();
    await page.getByText(`${events}/${events}`, { exact: true }).waitFor();
    await page.getByText(`${events} events checked in this browser`).waitFor();
    await page.getByText('by Pilot, 6 passes a draft').waitFor();
    const about = page.getByRole('complementary', { name: 'About this run' });
    expect(await about.getByText('3', { exact: true }).count(), 'drafts').to.equal(1);
    const texts = await page.getByRole('list', { name: 'Events' }).innerText();
    expect(texts).to.include('Pilot scored the draft 7 and sent it to Editor').and.to.not.match(/_1/);
    await page.getByRole('tab', { name: 'Steps' }).click();
    const rows = page.getByRole('list', { name: 'Steps' }).getByRole('listitem');
    expect((await rows.nth(1).innerText()).split('\n')).to.deep.include.members(['Pilot', 'score 5', 'not reported']);
    const sums = page.getByRole('group', { name: 'Cost by member' });
    expect(await sums.getByRole('row', { name: /^Author/ }).innerText()).to.match(
      /Author\s+2\s+20 in, 10 out\s+not reported/,
    );
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt('links the runs before and after it', async () => {
    const page = await open();
    await page.getByRole('link', { name: 'Newer run' }).click();
    await page.getByRole('heading', { level: 1, name: 'A newer one' }).waitFor();
    await page.getByRole('link', { name: 'Older run' }).click();
    await page.getByRole('heading', { level: 1, name: 'The harbour' }).waitFor();
    await page.getByRole('link', { name: 'Older run' }).click();
    await page.getByRole('heading', { level: 1, name: 'An older one' }).waitFor();
    await page.getByRole('link', { name: 'Newer run' }).waitFor();
    expect(await page.getByRole('link', { name: 'Older run' }).count()).to.equal(0);
  });

  soakIt('links the runs beside it in the list from which it was opened, also after a reload', async () => {
    // The harbour started between the two runs of the built-in council, and has fewer drafts.
    const page = await browser.open(`${service.url}/console/?blueprint_id=council`);
    await page.getByRole('link', { name: 'An older one' }).click();
    await page.getByRole('link', { name: 'Newer run' }).click();
    await page.getByRole('heading', { level: 1, name: 'A newer one' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Older run' }).click();
    await page.getByRole('heading', { level: 1, name: 'An older one' }).waitFor();
    expect(await page.getByRole('link', { name: 'Older run' }).count()).to.equal(0);
    await page.goto(`${service.url}/console/?sort=iterations`);
    await page.getByRole('link', { name: 'The harbour' }).click();
    await page.getByRole('link', { name: 'Next run' }).click();
    await page.getByRole('heading', { level: 1, name: 'An older one' }).waitFor();
    await page.getByRole('link', { name: 'Next run' }).click();
    await page.getByRole('heading', { level: 1, name: 'A newer one' }).waitFor();
    await page.getByRole('link', { name: 'Previous run' }).waitFor();
    expect(await page.getByRole('link', { name: 'Next run' }).count()).to.equal(0);
  });

  soakIt(
    'begins within the first screen of a phone, where the timeline scrolls and a turn fits the graph again',
    async () => {
      const page = await open('', { width: 360, height: 740 });
      const text = page.getByRole('heading', { level: 3, name: 'A plan for the harbour' });
      expect(present(await text.boundingBox(), 'draft').y).to.be.below(600);
      await page.getByRole('button', { name: 'Share' }).click();
      const item = present(await page.getByRole('button', { name: 'Record (HTML)' }).boundingBox(), 'item');
      expect([item.x >= 0, item.x + item.width <= 360]).to.deep.equal([true, true]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Trace' }).click();
      const graph = page.getByRole('group', { name: 'Council' });
      const [first, last] = ['Author', 'Editor'].map((name) => graph.getByRole('button', { name }).first());
      const isInside = async (): Promise<boolean> => {
        const [outer, ...inner] = await Promise.all(
          [graph, present(first, 'node'), present(last, 'node')].map((each) => each.boundingBox()),
        );
        const { x, y, width, height } = present(outer, 'graph');
        return inner.every((box) => {
          const node = present(box, 'node');
          return node.x >= x && node.y >= y && node.x + node.width <= x + width && node.y + node.height <= y + height;
        });
      };
      await present(first, 'node').waitFor();
      expect(await isInside()).to.equal(true);
      const scale = async (): Promise<number> => present(await present(first, 'node').boundingBox(), 'node').x;
      const before = await scale();
      await page.setViewportSize({ width: 740, height: 360 });
      await page.waitForFunction(`document.querySelector('.graph-node').getBoundingClientRect().x !== ${before}`);
      const box = present(await graph.boundingBox(), 'graph');
      const node = present(await present(first, 'node').boundingBox(), 'node');
      expect(Math.abs(node.x + node.width / 2 - (box.x + box.width / 2)), 'distance from the middle').to.be.below(2);
      await page.setViewportSize({ width: 360, height: 740 });
      await page.getByRole('tab', { name: 'Timeline' }).click();
      const [sheet, view] = await page.evaluate<number[]>(
        "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('.timeline'))",
      );
      expect(sheet).to.be.greaterThan(present(view, 'width'));
      expect(await faultsIn(page)).to.deep.equal([]);
    },
  );
});

describeInBrowser('The sources and the end of a run', (browser) => {
  const dir = tempDir();
  let town: LivedInService;

  before(async () => {
    town = await startLivedInService();
  });
  after(async () => {
    await town.stop();
    dir.remove();
  });

  async function open(path: string): Promise<Page> {
    const page = await browser.open(`${town.url}/console/nothing`, { expectsRefusals: true });
    await page.context().request.post(`${town.url}/api/session`, { data: { key: town.keys.ann } });
    await page.goto(`${town.url}/console/${path}`);
    return page;
  }

  soakIt('are links in the draft and a list below it, with document names, also in a shared file offline', async () => {
    const page = await open(`runs/${town.runs.paused}`);
    const sources = page.getByRole('region', { name: 'Sources' });
    const first = sources.getByRole('link').first();
    await sources.getByText('Library statutes.pdf, page 1').waitFor();
    expect(await first.innerText()).to.equal('Library statutes.pdf, page 1');
    const mark = page.getByRole('link', { name: 'Source 1: Library statutes.pdf, page 1' }).first();
    expect(await mark.innerText()).to.equal('[1]');
    expect(await mark.getAttribute('href')).to.match(/^\/console\/documents\/[0-9a-f]{64}\?page=1&chunk=\d+$/);
    expect(await mark.getAttribute('href')).to.equal(await first.getAttribute('href'));
    await page.emulateMedia({ media: 'print' });
    const printed = (await page.innerText('body')).trim();
    expect(printed)
      .to.match(/^Open the library on Sundays\s/)
      .and.to.match(/page \d+$/);
    expect(printed).to.not.match(/Approve|Offline model:|Download|Draft 4/);
    await page.emulateMedia({ media: 'screen' });
    const file = join(dir.path, 'run.html');
    writeFileSync(file, await textOf(await saved(page, 'Share', 'Record')));
    await page.context().setOffline(true);
    const offline = await browser.open(pathToFileURL(file).href, { context: page.context() });
    await offline.getByRole('region', { name: 'Sources' }).getByText('Library statutes.pdf, page 1').waitFor();
    expect(await offline.getByRole('link', { name: /^Source/ }).count()).to.equal(0);
    for (const name of ['Graph', 'Steps', 'Events']) {
      await offline.getByRole('button', { name: 'Trace' }).click();
      await offline.getByRole('tab', { name }).click();
    }
    await offline.getByRole('list', { name: 'Events' }).getByText('The run paused before Reviewer').waitFor();
    expect(await faultsIn(offline)).to.deep.equal([]);
  });

  soakIt(
    'are numbers wherever the draft or its changes are shown, also in a fork, a comparison and the inbox',
    async () => {
      const { paused, guided, fork } = town.runs;
      for (const [path, place] of [
        [`runs/${paused}?tab=changes`, '.tab-panel .text-diff'],
        [`runs/${paused}?tab=draft`, '.run-pause .text-diff'],
        [`runs/${fork}`, '.prose'],
        [`compare?a=${guided}&b=${fork}`, 'section[aria-label="Final drafts"] .text-diff'],
        [`inbox?run=${paused}`, '.pause-card .text-diff'],
        [`inbox?run=${paused}`, '.pause-card .prose'],
      ] as const) {
        const page = await open(path);
        if (place.startsWith('.run-pause')) await page.getByText('Changes since the last pause').click();
        const texts = page.locator(place);
        await texts
          .filter({ hasText: /\[\d\]/ })
          .first()
          .waitFor();
        await untilTrue(async () => !/\[[0-9a-f]{8}:\d+/.test((await texts.allInnerTexts()).join()));
      }
      const page = await open(`runs/${fork}`);
      const word = await saved(page, 'Download', 'Word');
      const text = unzipped(readFileSync(await word.path())).get('word/document.xml') ?? '';
      expect(text)
        .to.match(/pdf, page \d</)
        .and.to.not.match(/\[[0-9a-f]{8}:/);
      await page
        .getByRole('link', { name: /^Source 1: .*pdf, page \d$/ })
        .first()
        .waitFor();
      const file = join(dir.path, 'fork.html');
      writeFileSync(file, await textOf(await saved(page, 'Share', 'Record')));
      const offline = await browser.open(pathToFileURL(file).href);
      await offline
        .getByRole('region', { name: 'Sources' })
        .getByText(/pdf, page \d$/)
        .first()
        .waitFor();
      expect(await offline.locator('.prose').innerText())
        .to.include('[1]')
        .and.to.not.match(/\[[0-9a-f]{8}:/);
    },
  );

  soakIt(
    'is counted and listed by the same word, so that no rejected or cancelled run is among the failed ones',
    async () => {
      const page = await open('');
      const views = page.getByRole('navigation', { name: 'Views' });
      for (const word of ['Failed', 'Rejected', 'Cancelled']) {
        const view = views.getByRole('link', { name: new RegExp(`^${word} [1-9]`) });
        const count = Number((await view.innerText()).split(/\s/).at(-1));
        await view.click();
        await page.locator(`h1 .total:text-is("${count}")`).waitFor();
        const words = page.locator('td.status .status');
        const listed = Array.from({ length: count }, () => word.toLowerCase()).join();
        await untilTrue(async () => (await words.allInnerTexts()).join() === listed);
        expect(await page.getByLabel('Status').inputValue()).to.equal(word.toLowerCase());
      }
      await page.getByLabel('Status').selectOption('waiting');
      await page.waitForURL(({ search }) => search === '?status=paused');
    },
  );

  soakIt(
    'names a rejected and a cancelled run apart from a failed one, with the reason, and shows no empty boxes',
    async () => {
      const page = await open('');
      for (const [topic, word, reason] of [
        ['A roof of solar panels for the school', 'rejected', 'Rejected by the user in God Mode'],
        ['Which trees for the market square?', 'cancelled', 'Cancelled by the user'],
        ['Night buses on Fridays', 'failed', 'Cannot run the council: No edge leads out of the cycle'],
      ] as const) {
        await page.goto(`${town.url}/console/?q=${encodeURIComponent(topic)}`);
        await page.getByRole('link', { name: topic }).first().click();
        await page.getByRole('heading', { level: 1, name: topic }).waitFor();
        await page.locator('.run-head').getByText(word, { exact: true }).waitFor();
        await page.locator('.notice.bad').getByText(reason).waitFor();
        await page.getByText('events checked in this browser').waitFor();
      }
      await page.getByText('The run ended without a draft.').waitFor();
      for (const rank of ['Result', 'Trace']) {
        await page.getByRole('button', { name: rank }).click();
        for (const tab of await page.getByRole('tab').all()) {
          await tab.click();
          expect(await page.locator('.empty').count(), await tab.innerText()).to.equal(0);
        }
      }
    },
  );
});

/** Chooses an action of a menu and waits for its file. */
async function saved(page: Page, menu: 'Download' | 'Share', action: string): Promise<Download> {
  await page.getByRole('button', { name: menu }).click();
  const download = page.waitForEvent('download');
  await page
    .locator('.menu-list')
    .getByRole('button', { name: new RegExp(`^${action}`) })
    .click();
  return await download;
}

async function textOf(download: Download): Promise<string> {
  return readFileSync(await download.path(), 'utf8');
}
