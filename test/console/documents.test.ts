import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { allOf } from '../support/all-of.js';
import type { ConsoleBrowser } from '../support/console-browser.js';
import { describeInBrowser } from '../support/console-browser.js';
import { encryptedPdf } from '../support/encrypted-pdf.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { idOf, pdfWith } from '../support/upload-client.js';
import { sample, soakIt } from '../support/soak.js';

const TREES = pdfWith(['Oaks grow slowly and live long.'], ['Ash is what oars are made of.', 'Yew is for bows.']);

interface FileGiven {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

function pdf(name: string, buffer: Buffer): FileGiven {
  return { name, mimeType: 'application/pdf', buffer };
}

describeInBrowser('The documents of the console', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  const open = (path = '', options: Parameters<ConsoleBrowser['open']>[1] = {}): Promise<Page> =>
    browser.open(`${service.url}/console/documents${path}`, options);

  async function given(name: string, bytes: Buffer): Promise<string> {
    await council.documents.upload(new Blob([new Uint8Array(bytes)]), { filename: name });
    return idOf(bytes);
  }

  async function choose(page: Page, files: readonly FileGiven[]): Promise<void> {
    const chosen = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Upload PDFs' }).click();
    await (await chosen).setFiles([...files]);
  }

  /** @param content the content of the file, as a JavaScript expression for the page */
  async function drop(page: Page, name: string, content: string): Promise<void> {
    await page.evaluate(`(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([${content}], '${name}'));
      const event = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true });
      document.querySelector('h1').dispatchEvent(event);
    })()`);
  }

  it('uploads several files by button, shows their progress and lists them', async () => {
    const page = await open();
    await page.getByText('No documents yet').waitFor();
    // Delays the answer, so that the page shows the progress.
    let letGo = (): void => undefined;
    const isSeen = new Promise<void>((resolve) => (letGo = resolve));
    await page.route('**/upload-pdf', async (route) => {
      await isSeen;
      await route.continue();
    });
    await choose(page, [pdf('trees.pdf', TREES), pdf('boats.pdf', pdfWith(['Boats are made of ash.']))]);
    await page.getByRole('progressbar', { name: 'Progress of trees.pdf' }).waitFor();
    await page.getByRole('progressbar', { name: 'Progress of boats.pdf' }).waitFor();
    letGo();
    await page.getByText('2 chunks of trees.pdf ingested').waitFor();
    await page.getByText('1 chunk of boats.pdf ingested').waitFor();
    const row = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'trees.pdf' }) });
    expect(await row.innerText()).to.match(/2 pages\s+2 chunks\s+.*(just now|ago)/);
    await page.getByRole('button', { name: 'Dismiss trees.pdf' }).click();
    await page.getByText('2 chunks of trees.pdf ingested').waitFor({ state: 'detached' });
  });

  soakIt('uploads files that a user drops on the page', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Upload PDFs' }).waitFor();
    const bytes = [...pdfWith(['Dropped like an acorn.'])];
    await drop(page, 'acorn.pdf', `new Uint8Array(${JSON.stringify(bytes)})`);
    await page.getByText('1 chunk of acorn.pdf ingested').waitFor();
    await page.getByRole('link', { name: 'acorn.pdf' }).waitFor();
  });

  it('shows why an upload failed or added nothing', async () => {
    await given('trees.pdf', TREES);
    const page = await open('', { expectsRefusals: true });
    const refused: readonly (readonly [FileGiven, string | RegExp])[] = [
      [pdf('locked.pdf', encryptedPdf({ cipher: 'aes-128', password: 'secret', lines: ['Hush'] })), /encrypted/],
      [pdf('again.pdf', TREES), /Nothing was added: .* 2 chunks/],
      [pdf('blank.pdf', pdfWith([])), /No text was found in blank\.pdf/],
      [pdf('letter.pdf', Buffer.from('Dear council')), /does not begin as a PDF/],
      [pdf('letter.txt', Buffer.from('Dear council')), /name does not end in \.pdf/],
    ];
    for (const [file, why] of sample(refused, 2)) {
      await choose(page, [file]);
      await page.getByRole('list', { name: 'Uploads' }).getByText(why).waitFor();
    }
    await drop(page, 'sea.pdf', 'new Uint8Array(50 * 1024 * 1024 + 1)');
    await page.getByText('larger than 50 MiB').waitFor();
  });

  soakIt('sends a file again after a failure, on request', async () => {
    const page = await open('', { expectsRefusals: true });
    let isFull = true;
    const refusal = { status: 400, json: { detail: 'The disk is full' } };
    await page.route('**/upload-pdf', (route) => (isFull ? route.fulfill(refusal) : route.continue()));
    await choose(page, [pdf('elms.pdf', pdfWith(['Elms were felled by a beetle.']))]);
    await page.getByText('The disk is full').waitFor();
    isFull = false;
    await page.getByRole('button', { name: 'Try again elms.pdf' }).click();
    await page.getByText('1 chunk of elms.pdf ingested').waitFor();
    await drop(page, 'lake.pdf', 'new Uint8Array(50 * 1024 * 1024 + 1)');
    await page.getByText('larger than 50 MiB').waitFor();
    expect(await page.getByRole('button', { name: /^Try again/ }).count()).to.equal(0);
  });

  it('searches as members do, and links each chunk', async () => {
    const id = await given('trees.pdf', TREES);
    const page = await open();
    await page.getByLabel('Search as members do').fill('what are oars made of');
    await page.keyboard.press('Enter');
    const first = page.getByRole('list', { name: 'Search results' }).getByRole('listitem').first();
    await first.getByText('Ash is what oars').waitFor();
    expect(await first.innerText()).to.match(/trees\.pdf, page 2\s+\[\w+:2\] · score 0\.\d+/);
    expect(new URL(page.url()).searchParams.get('q')).to.equal('what are oars made of');
    await page.reload();
    await first.getByRole('link').click();
    await page.waitForURL((url) => url.pathname === `/console/documents/${id}`);
    expect(new URL(page.url()).search).to.equal('?page=2&chunk=1');
    await page.goBack();
    await first.waitFor();
  });

  soakIt('marks the chunk in the URL and scrolls to it', async () => {
    const lines = Array.from(
      { length: 60 },
      (_, line) => `Line ${line} tells at length how the beeches of the hill were felled.`,
    );
    const id = await given('hill.pdf', pdfWith(['A first page.'], lines));
    const { chunks } = await council.documents.get(id);
    const page = await open(`/${id}?page=2&chunk=${chunks - 1}`, { height: 500 });
    await page.getByRole('heading', { level: 1, name: 'hill.pdf' }).waitFor();
    const meant = page.locator('[aria-current="true"]');
    await meant.getByText('Line 59').waitFor();
    expect(await meant.innerText()).to.include(`Chunk ${chunks}`);
    await page.locator('[aria-current="true"]:focus').waitFor();
    await page.waitForFunction('scrollY > 0');
    await page.getByRole('link', { name: 'Previous' }).click();
    await page.getByText('A first page.').waitFor();
    expect(await meant.count()).to.equal(0);
  });

  soakIt('deletes a document after confirmation, even if another user deleted it first', async () => {
    const [elm, fir] = [pdfWith(['Elm.']), pdfWith(['Fir.'])];
    const id = await given('elm.pdf', elm);
    await given('fir.pdf', fir);
    const page = await open('', { expectsRefusals: true });
    await page.getByRole('button', { name: 'Delete elm.pdf' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete elm.pdf' }).click();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('link', { name: 'elm.pdf' }).waitFor({ state: 'detached' });
    await page.goto(`${service.url}/console/documents/${idOf(fir)}`);
    await page.getByRole('heading', { level: 1, name: 'fir.pdf' }).waitFor();
    await council.documents.delete(idOf(fir));
    await page.getByRole('button', { name: 'Delete fir.pdf' }).click();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    expect((await allOf(council.documents.list())).map((each) => each.id)).to.not.include(id);
  });

  soakIt('shows that a document does not exist, or that a page has no text', async () => {
    const page = await open(`/${'0'.repeat(64)}`, { expectsRefusals: true });
    await page.getByRole('alert').getByText('Cannot find document').waitFor();
    const id = await given('blank.pdf', pdfWith([], ['Words']));
    await page.goto(`${service.url}/console/documents/${id}`);
    await page.getByText('No text on page 1').waitFor();
  });
});
