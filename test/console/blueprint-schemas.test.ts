import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { LOOKS, describeInBrowser, faultsIn, overweight } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { idOf, pdfWith } from '../support/upload-client.js';

const SCHEMA = { type: 'object', required: ['fair'], properties: { fair: { type: 'boolean' } } };

describeInBrowser('Schemas, documents and material in the editor', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  const member = (page: Page, name: string) => page.locator('.graph-node').filter({ hasText: name });
  async function open(id: string, options = {}): Promise<Page> {
    const nodes = [
      { id: 'author', label: 'Author' },
      { id: 'table', label: 'Table' },
      { id: 'editor', label: 'Editor' },
    ];
    const edges = [
      { source: 'author', target: 'table' },
      { source: 'table', target: 'editor' },
    ];
    await council.blueprints.create({ id, name: id, nodes, edges });
    const page = await browser.open(`${service.url}/console/blueprints/${id}`, options);
    await member(page, 'Author').waitFor();
    return page;
  }
  async function saved(page: Page, id: string, version: number) {
    await page.keyboard.press('Control+s');
    await page.getByText(`Saved as version ${version}`).waitFor();
    return await council.blueprints.get(id);
  }

  it('make a member a format, whose schema shows its faults in place and a sample', async () => {
    const page = await open('formats', { expectsRefusals: true });
    await member(page, 'Table').click();
    await page.getByLabel('Role').selectOption('format');
    const schema = page.getByRole('textbox', { name: 'JSON Schema' });
    expect(await schema.inputValue()).to.include('"answer"');
    await page.getByText('Sample of the output').click();
    const sample = page.getByRole('group', { name: 'Sample of the output' });
    await sample.getByText('"answer": "A text"').waitFor();
    await schema.fill('{"type": ');
    await schema.blur();
    await page.getByText(/^This is not JSON/).waitFor();
    expect(await schema.inputValue()).to.equal('{"type": ');
    await schema.fill('{"type": "thing"}');
    await page
      .getByText(/^The schema cannot be used/)
      .first()
      .waitFor();
    expect(await schema.getAttribute('aria-invalid')).to.equal('true');
    await schema.fill('');
    await page
      .getByText(/has no schema$/)
      .first()
      .waitFor();
    await schema.fill(JSON.stringify(SCHEMA));
    await page.getByText('Sample of the output').click();
    await sample.getByText('"fair": true').waitFor();
    await page
      .getByText(/has no schema$/)
      .first()
      .waitFor({ state: 'detached' });
    expect([...(await faultsIn(page, true, LOOKS)), ...(await overweight(page))]).to.deep.equal([]);
    const { nodes } = await saved(page, 'formats', 2);
    expect(nodes[1]).to.deep.include({ type: 'format', schema: SCHEMA });
    await page.getByLabel('Role').selectOption('agent');
    expect((await saved(page, 'formats', 3)).nodes[1]).not.to.have.property('schema');
  });

  it('keep the material from a member', async () => {
    const page = await open('without');
    await member(page, 'Editor').click();
    const box = page.getByRole('checkbox', { name: 'Without the material of the run' });
    await box.check();
    expect((await saved(page, 'without', 2)).nodes[2]).to.include({ material: false });
    await box.uncheck();
    expect((await saved(page, 'without', 3)).nodes[2]?.material).not.to.equal(false);
  });

  it('show the output of a test run also if it is null', async () => {
    const page = await open('nothing');
    await page.getByRole('button', { name: 'Test' }).first().click();
    await page.getByRole('textbox', { name: 'Topic' }).fill('Oaks');
    await page.getByText(/^Material, documents, exact output/).click();
    await page.getByRole('textbox', { name: 'JSON Schema of the output' }).last().fill('{"type": "null"}');
    await page.getByRole('button', { name: /^Start test run/ }).click();
    await page.getByRole('group', { name: 'Output' }).getByText('null').waitFor();
  });

  it('choose documents and the schema of the output of every run, and remove them', async () => {
    const bytes = pdfWith(['Oaks grow slowly.']);
    await council.documents.upload(new Blob([new Uint8Array(bytes)]), { filename: 'oaks.pdf' });
    const page = await open('options');
    await page.getByText('Documents and exact output').click();
    await page.getByRole('checkbox', { name: 'oaks.pdf' }).check();
    const schema = page.getByRole('textbox', { name: 'JSON Schema of the output' });
    await schema.fill(JSON.stringify(SCHEMA));
    await schema.blur();
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    expect(await saved(page, 'options', 2)).to.deep.include({ documents: [idOf(bytes)], output_schema: SCHEMA });
    await page.getByRole('button', { name: 'Test' }).first().click();
    await page.getByRole('textbox', { name: 'Topic' }).fill('Oaks');
    await page.getByText(/^Material, documents, exact output/).click();
    await page.getByRole('textbox', { name: 'Material' }).fill('Oaks are tall.');
    await page.getByRole('button', { name: /^Start test run/ }).click();
    await page.getByRole('group', { name: 'Output' }).getByText('fair').waitFor();
    const link = page.getByRole('link', { name: 'Open the run in a new tab' });
    const id = (await link.getAttribute('href'))?.split('/').at(-1) ?? '';
    expect(await council.run(id).result()).to.include({ status: 'completed', material_bytes: 14 });
    expect((await council.run(id).result()).final_output).to.have.keys('fair');
    await page.reload();
    await page.getByRole('checkbox', { name: 'oaks.pdf' }).uncheck();
    await schema.fill('');
    const now = await saved(page, 'options', 3);
    expect([now.documents, now.output_schema]).to.deep.equal([undefined, undefined]);
  });
});
