import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Run } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { materialOf, schemaIn, sizeText } from '../../src/console/record/matter.js';
import { LOOKS, describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { idOf, pdfWith } from '../support/upload-client.js';

const DISCLOSURE = /^Material, documents, exact output/;
const SCHEMA = { type: 'object', required: ['fair'], properties: { fair: { type: 'boolean' } } };

describe('Material and schemas as a user enters them', () => {
  it('are one file as it is, as on the command line, or each file below its name, after the pasted text', () => {
    const files = [
      { name: 'a.md', text: 'Oak' },
      { name: 'b.csv', text: 'x,y' },
    ];
    expect(materialOf('', [])).to.equal('');
    expect(materialOf(' \n', files.slice(0, 1))).to.equal('Oak');
    expect(materialOf('Pasted', files.slice(0, 1))).to.equal('Pasted\n\n## a.md\n\nOak');
    expect(materialOf(' \n', files)).to.equal('## a.md\n\nOak\n\n## b.csv\n\nx,y');
    expect(materialOf('Pasted', files)).to.equal('Pasted\n\n## a.md\n\nOak\n\n## b.csv\n\nx,y');
  });

  it('say their size as people do', () => {
    const sizes = [1, 812, 12_345, 480_000, 999_500];
    expect(sizes.map(sizeText)).to.deep.equal(['1 byte', '812 bytes', '12.3 kB', '480 kB', '1 MB']);
  });

  it('are a schema only as a JSON object', () => {
    expect(schemaIn(' ')).to.deep.equal({ schema: null });
    expect(schemaIn(JSON.stringify(SCHEMA))).to.deep.equal({ schema: SCHEMA });
    expect(schemaIn('{"type":'))
      .to.have.property('fault')
      .that.matches(/^This is not JSON/);
    expect(schemaIn('[]'))
      .to.have.property('fault')
      .that.matches(/^A schema is a JSON object/);
  });
});

describeInBrowser('The material, documents and output of a start', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
    await (await council.runs.start({ topic: 'Before' })).result();
  });
  after(() => service.stop());

  const dialog = (page: Page) => page.getByRole('dialog');
  const startButton = (page: Page) => dialog(page).getByRole('button', { name: /^Start/ });
  const material = (page: Page) => page.getByRole('textbox', { name: 'Material' });
  async function open(topic: string, options = {}): Promise<Page> {
    const page = await browser.open(`${service.url}/console/`, options);
    await page.getByRole('button', { name: /^Start a run/ }).click();
    await page.getByRole('textbox', { name: 'Topic' }).fill(topic);
    return page;
  }
  const head = (page: Page) => page.locator('summary').filter({ hasText: DISCLOSURE });
  /** @param files names with the content, a JavaScript expression of the page */
  async function drop(page: Page, files: Readonly<Record<string, string>>): Promise<void> {
    const given = Object.entries(files).map(([name, content]) => `new File([${content}], ${JSON.stringify(name)})`);
    await page.evaluate(`(() => {
      const dataTransfer = new DataTransfer();
      for (const file of [${given.join()}]) dataTransfer.items.add(file);
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
    })()`);
  }
  async function startedRun(page: Page) {
    await startButton(page).click();
    await page.waitForURL(/\/console\/runs\/[-0-9a-f]{36}$/);
    return council.run(page.url().slice(-36));
  }

  it('start a run with pasted text, dropped and picked files, and a schema', async () => {
    const page = await open('Is it fair?');
    await drop(page, { 'lease.md': '"The tenant pays."', 'rent.csv': '"month,€\\n1,900"' });
    await page.getByText('rent.csv', { exact: true }).waitFor();
    await material(page).fill('Read it all.');
    const chosen = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Add text files' }).click();
    await (await chosen).setFiles([{ name: 'a.ts', mimeType: 'text/plain', buffer: Buffer.from('﻿let a;') }]);
    await page.getByText('a.ts', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Remove lease.md' }).click();
    await page.getByRole('textbox', { name: 'JSON Schema of the output' }).fill(JSON.stringify(SCHEMA));
    const text = 'Read it all.\n\n## rent.csv\n\nmonth,€\n1,900\n\n## a.ts\n\nlet a;';
    await page.getByText(`${Buffer.byteLength(text)} bytes of 600 kB`).waitFor();
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    await head(page).click();
    await page.getByText(`${Buffer.byteLength(text)} bytes in 2 files · output schema`).waitFor();
    const run = await startedRun(page);
    expect(await run.material()).to.equal(text);
    expect((await run.result()).final_output).to.deep.equal({ fair: true });
  });

  it('refuse files that are no text or too long, and a material that is too long', async () => {
    const page = await open('Is it fair?');
    await drop(page, {
      'old.txt': 'new Uint8Array([0xe4, 0x20])',
      'wide.txt': 'new Uint8Array([0x61, 0, 0x62, 0])',
      'long.txt': '"x".repeat(600001)',
      'scan.pdf': '"%PDF-1.4"',
      'most.txt': '"é".repeat(299993)',
    });
    await page.getByText('most.txt', { exact: true }).waitFor();
    const refused = await page.getByRole('alert').innerText();
    expect(refused.split('\n')).to.deep.equal([
      'old.txt is not text in UTF-8. Save it in this encoding and add it again.',
      'wide.txt is not text in UTF-8. Save it in this encoding and add it again.',
      'long.txt has 600,001 bytes. At most 600,000 are possible.',
      'scan.pdf is not a text file. Upload PDFs on the page Documents.',
    ]);
    expect(await page.getByText('The material has').count()).to.equal(0);
    await material(page).fill('x');
    const fault = 'The material has 600,002 bytes. At most 600,000 are possible: remove a file or a part of the text.';
    await page.getByText(fault).waitFor();
    await head(page).click();
    await startButton(page).click();
    await page.getByText(fault).waitFor();
    await page.waitForFunction('/^The text/.test(document.activeElement.getAttribute("placeholder"))');
    expect(new URL(page.url()).pathname).to.equal('/console/');
  });

  it('show the faults of a schema at its field, also those that the service finds', async () => {
    const page = await open('Is it fair?', { expectsRefusals: true });
    await head(page).click();
    const schema = page.getByRole('textbox', { name: 'JSON Schema of the output' });
    await schema.fill('{"type": ');
    await startButton(page).click();
    await page.getByText(/^This is not JSON/).waitFor();
    expect(await schema.getAttribute('aria-invalid')).to.equal('true');
    await schema.fill('{"type": "thing"}');
    await startButton(page).click();
    await page.getByText(/^The schema cannot be used/).waitFor();
    expect(await schema.getAttribute('aria-invalid')).to.equal('true');
    await schema.fill('{"type": "boolean"}');
    expect(await schema.getAttribute('aria-invalid')).to.equal(null);
    expect((await (await startedRun(page)).result()).final_output).to.equal(true);
  });

  it('offer documents when there are some, and start with the chosen ones', async () => {
    const page = await open('Trees');
    await head(page).click();
    await material(page).waitFor();
    expect(await page.getByRole('group', { name: 'Documents' }).count()).to.equal(0);
    const papers = Array.from({ length: 9 }, (_, at) => pdfWith([`Paper ${at} is about trees.`]));
    for (const [at, bytes] of papers.entries()) {
      await council.documents.upload(new Blob([new Uint8Array(bytes)]), { filename: `paper ${at}.pdf` });
    }
    await head(page).click();
    await head(page).click();
    const choice = page.getByRole('group', { name: 'Documents' });
    await choice.getByText('The PDF reader searches the documents of the council, or all.').waitFor();
    await choice.getByRole('searchbox', { name: 'Find a document' }).fill('paper 7');
    await choice.getByRole('checkbox', { name: 'paper 7.pdf' }).check();
    await choice.getByRole('searchbox').fill('');
    await choice.getByRole('checkbox', { name: 'paper 2.pdf' }).check();
    await choice.getByText('The PDF reader searches 2 chosen documents.').waitFor();
    expect(await faultsIn(page, true, LOOKS)).to.deep.equal([]);
    const run = await startedRun(page);
    const ids = [papers[7], papers[2]].map((bytes) => idOf(bytes ?? Buffer.alloc(0)));
    expect(await documentsOf(run)).to.deep.equal(ids);
  });

  /** The documents in the first event of a run. */
  async function documentsOf(run: Run): Promise<unknown> {
    for await (const event of run.events()) if (event.type === 'RunRequested') return event.data.documents;
    return null;
  }
});
