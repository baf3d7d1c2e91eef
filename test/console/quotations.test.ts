import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { saveReadingCouncil, startReading } from '../support/reading-council.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const TREES = pdfWith(['Oaks are trees that grow slowly.']);
const MARK = idOf(TREES).slice(0, 8);
const DRAFT = `Oaks are “trees that grow slowly” [${MARK}:1], and “trees that grow very fast” [${MARK}:1].`;

describeInBrowser('The quotations of a draft', (browser) => {
  const dir = tempDir();
  let service: RunningService;
  let runId: string;

  before(async () => {
    service = await startService({
      model: scriptedModel([asks(['pdf_reader', { query: 'trees', top_k: 1 }]), { text: DRAFT }]),
    });
    await uploaded(service.url, TREES, 'trees.pdf');
    await saveReadingCouncil(service.url);
    runId = await startReading(service.url);
    await restClient(service.url).until(runId, isOver);
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  const isMarked = async (page: Page): Promise<void> => {
    await page.locator('.prose mark').waitFor();
    expect(await page.locator('.prose').innerText()).to.equal(
      'Oaks are “trees that grow slowly” [1], and “trees that grow very fast” [1] [not found].',
    );
    const sources = await page.getByRole('region', { name: 'Sources' }).innerText();
    expect(sources).to.include('1 of 2 quotations was not found in its source.');
    expect(sources).to.include('Not found in it: “trees that grow very fast”').and.not.include('grow slowly');
  };

  it('are marked in it and below it if they are missing, also in print and in a shared file offline', async () => {
    const page = await browser.open(`${service.url}/console/runs/${runId}`);
    await isMarked(page);
    await page.emulateMedia({ media: 'print' });
    await isMarked(page);
    await page.emulateMedia({ media: 'screen' });
    await page.getByRole('button', { name: 'Share' }).click();
    const saving = page.waitForEvent('download');
    await page
      .locator('.menu-list')
      .getByRole('button', { name: /^Record/ })
      .click();
    const file = join(dir.path, 'run.html');
    writeFileSync(file, readFileSync(await (await saving).path()));
    await page.context().setOffline(true);
    const offline = await browser.open(pathToFileURL(file).href, { context: page.context() });
    await isMarked(offline);
    expect(await faultsIn(offline)).to.deep.equal([]);
  });
});
