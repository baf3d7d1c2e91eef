import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { MOST_PLACES, blocksOf, placesOf } from '../../src/console/record/find-in-text.js';
import { LOOKS, describeInBrowser, faultsIn, overweight } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';

const SCHEMA = { type: 'object', required: ['title', 'trees'] } as const;
const VALUE = {
  title: 'Oaks & ashes',
  trees: [
    { name: 'oak', age: 80 },
    { name: '', age: null },
  ],
  tags: [],
  more: {},
};
const DRAFT = 'Oaks grow slowly.';
/** 600,000 bytes with 1,200 times the word. */
const MATERIAL = `${'The clause of the lease. '.repeat(19)}Tree\n clause one.${' '.repeat(9)}\n`
  .repeat(1_250)
  .slice(0, 600_000);

describe('Words in a long text', () => {
  it('are found in any case, with any space between them, and as they are typed', () => {
    expect(placesOf('A (big)\n  Oak, a (BIG) oak.', ' (big)  oak')).to.deep.equal([
      { from: 2, to: 13 },
      { from: 17, to: 26 },
    ]);
    expect(placesOf('a', '  ')).to.deep.equal([]);
    expect(placesOf('x'.repeat(20_000), 'x')).to.have.lengthOf(MOST_PLACES);
  });

  it('stand in blocks without gaps, which end with lines where there are lines', () => {
    for (const text of [MATERIAL, 'x'.repeat(50_000), '😀'.repeat(20_000), 'ab '.repeat(20_000), '']) {
      const blocks = blocksOf(text);
      expect(blocks.map((block) => block.text).join('')).to.equal(text);
      expect(Math.max(0, ...blocks.map((block) => block.text.length))).to.be.below(17_000);
    }
    expect(blocksOf(MATERIAL).every(({ text }) => text.endsWith('\n') || MATERIAL.endsWith(text))).to.equal(true);
  });
});

describeInBrowser('The material and the output of a run', (browser) => {
  const dir = tempDir();
  let service: RunningService;
  let council: CouncilClient;
  /** What the model gives for a schema. */
  let output = JSON.stringify(VALUE);

  before(async () => {
    const model = scriptedModel(({ answer }) => {
      if (answer === 'critique') return { text: JSON.stringify({ score: 9, feedback: 'Fine' }) };
      return { text: answer === 'output' ? output : DRAFT };
    });
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  const open = (id: string, options = {}) => browser.open(`${service.url}/console/runs/${id}`, options);
  async function ended(options: object = {}): Promise<string> {
    const run = await council.runs.start({ topic: 'Trees', ...options });
    await run.result();
    return run.id;
  }
  const material = (page: Page) => page.locator('details.material');

  it('is folded with its size, and searched with a count and the next place', async () => {
    const page = await open(await ended({ material: MATERIAL }));
    await material(page).locator('summary').getByText('600 kB').waitFor();
    expect(await page.locator('.long-text').count()).to.equal(0);
    await material(page).locator('summary').click();
    const text = page.getByRole('group', { name: 'Material' });
    await text.waitFor();
    const count = placesOf(MATERIAL, 'tree clause').length;
    const find = page.getByRole('searchbox', { name: 'Find in the material' });
    await find.fill('TREE clause');
    const status = material(page).getByRole('status').first();
    await status.getByText(`1 of ${count}`, { exact: true }).waitFor();
    expect(await text.locator('mark.current').innerText()).to.equal('Tree\n clause');
    await find.press('Enter');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await status.getByText(`3 of ${count}`).waitFor();
    await find.press('Shift+Enter');
    await status.getByText(`2 of ${count}`).waitFor();
    for (const _ of [1, 2]) await page.getByRole('button', { name: 'Previous', exact: true }).click();
    await status.getByText(`${count} of ${count}`).waitFor();
    const sight = await text.boundingBox();
    const mark = await text.locator('mark.current').boundingBox();
    expect(mark?.y).to.be.within(sight?.y ?? NaN, (sight?.y ?? NaN) + (sight?.height ?? NaN));
    // The browser lays out only the blocks in sight.
    const ways = await page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('.long-text .block')].map((each) => getComputedStyle(each).contentVisibility)",
    );
    expect(ways).to.have.property('length').that.is.above(100);
    expect([...new Set(ways)]).to.deep.equal(['auto']);
    await find.fill('nowhere');
    await status.getByText('Not found').waitFor();
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
  });

  it('is shown if it is null', async () => {
    output = 'null';
    const page = await open(await ended({ outputSchema: { type: ['object', 'null'] } })).finally(
      () => (output = JSON.stringify(VALUE)),
    );
    const tree = page.getByRole('region', { name: 'Output' }).getByRole('group', { name: 'Output' });
    expect(await tree.innerText()).to.equal('null');
  });

  it('is a tree beside the prose, to copy and to save as JSON', async () => {
    const page = await open(await ended({ outputSchema: SCHEMA }));
    const region = page.getByRole('region', { name: 'Output' });
    await region.getByText('Oaks & ashes', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Draft' }).getByText(DRAFT).waitFor();
    const tree = region.getByRole('group', { name: 'Output' });
    expect((await tree.innerText()).replace(/\s+/g, ' ')).to.equal(
      '4 fields more no fields tags empty list title Oaks & ashes trees 2 entries 1 2 fields 2 2 fields',
    );
    await tree.getByText('2 fields').first().click();
    await tree.getByText('80', { exact: true }).waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await region.getByRole('button', { name: 'Copy JSON' }).click();
    await region.getByRole('button', { name: 'Copied' }).waitFor();
    expect(JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'))).to.deep.equal(VALUE);
    const saved = page.waitForEvent('download');
    await region.getByRole('button', { name: 'Download .json' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).to.equal('Trees.json');
    expect(JSON.parse(await readFile(await download.path(), 'utf8'))).to.deep.equal(VALUE);
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    await page.getByRole('slider', { name: 'Event shown' }).press('Home');
    await region.waitFor({ state: 'detached' });
  });

  it('that is not valid by its schema is explained, and a fork at this point repeats only the format', async () => {
    output = '{"title": 3}';
    const id = await ended({ outputSchema: SCHEMA });
    output = JSON.stringify(VALUE);
    const page = await open(id);
    await page
      .locator('.notice')
      .getByText('No final output came that is valid by its schema. The draft is complete.')
      .waitFor();
    await page.getByText(/repeats only the format\.$/).waitFor();
    await page.getByRole('region', { name: 'Draft' }).getByText(DRAFT).waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.getByRole('button', { name: 'Show the failed step' }).click();
    await page.getByRole('heading', { name: 'Output', exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Fork at this point' }).click();
    await page.getByText('at least 1 new call').waitFor();
    await page.getByRole('button', { name: 'Start fork' }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    await page.getByRole('region', { name: 'Output' }).getByText('Oaks & ashes', { exact: true }).waitFor();
  });

  it('are changed in a fork', async () => {
    const page = await open(await ended({ material: 'Old words', outputSchema: SCHEMA }), { expectsRefusals: true });
    await page.getByRole('button', { name: 'Fork here' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Material, documents, exact output').click();
    const text = dialog.getByRole('textbox', { name: 'Material' });
    expect(await text.inputValue()).to.equal('Old words');
    const schema = dialog.getByRole('textbox', { name: 'JSON Schema of the output' });
    expect(JSON.parse(await schema.inputValue())).to.deep.equal(SCHEMA);
    const start = dialog.getByRole('button', { name: 'Start fork' });
    await schema.fill('');
    await dialog.getByText('A fork cannot remove the schema: enter another one.').waitFor();
    expect(await start.isDisabled()).to.equal(true);
    await schema.fill('{"type": "thing"}');
    // The service's fault stands at the field, not in the cost.
    await dialog.getByText(/^The schema cannot be used/).waitFor();
    expect(await schema.getAttribute('aria-invalid')).to.equal('true');
    const cost = dialog.getByRole('region', { name: 'Cost' });
    expect(await cost.innerText())
      .to.include('Correct the field below')
      .and.not.to.include('cannot be used');
    await schema.fill('{"title": "Any"}');
    await cost.getByText('reused').waitFor();
    expect(await schema.getAttribute('aria-invalid')).to.equal(null);
    await text.fill('New words');
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    await start.click();
    await page.getByText('Forked the run').waitFor();
    const fork = council.run(page.url().slice(-36));
    expect(await fork.material()).to.equal('New words');
    expect((await fork.result()).final_output).to.deep.equal(VALUE);
  });

  it('shows the draft of a format as a tree, and its schema in the set-up of the member', async () => {
    const nodes = [
      { id: 'author', material: false },
      { id: 'table', type: 'format' as const, schema: SCHEMA },
    ];
    const { id } = await council.blueprints.create({
      name: 'A',
      nodes,
      edges: [{ source: 'author', target: 'table' }],
    });
    const page = await open(`${await ended({ blueprint: id, material: 'Words' })}?tab=graph`);
    await page.getByRole('button', { name: /^author/ }).click();
    await page.getByText('Set-up of author').click();
    await page.getByText('not in its prompt').waitFor();
    await page.getByRole('button', { name: /^table/ }).click();
    await page.getByText('Set-up of table').click();
    await page.getByText(/^JSON Schema, /).waitFor();
    await page.getByRole('button', { name: 'Result' }).click();
    await page.getByRole('group', { name: 'Draft as JSON' }).getByText('Oaks & ashes').waitFor();
  });

  it('are in a shared file, and the output on paper as JSON', async () => {
    const page = await open(await ended({ material: 'Shared words', outputSchema: SCHEMA }));
    const region = page.getByRole('region', { name: 'Output' });
    await region.waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Share' }).click();
    await page.getByRole('button', { name: 'Record (HTML)' }).click();
    const file = join(dir.path, 'run.html');
    writeFileSync(file, readFileSync(await (await saved).path()));
    await page.emulateMedia({ media: 'print' });
    expect(await region.getByRole('group', { name: 'Output' }).isVisible()).to.equal(false);
    expect(JSON.parse((await region.locator('pre').textContent()) ?? '')).to.deep.equal(VALUE);
    const offline = await browser.open(pathToFileURL(file).href);
    await offline.getByRole('region', { name: 'Output' }).getByText('Oaks & ashes', { exact: true }).waitFor();
    await material(offline).locator('summary').click();
    await offline.getByRole('group', { name: 'Material' }).getByText('Shared words').waitFor();
    expect(await faultsIn(offline)).to.deep.equal([]);
  });
});
