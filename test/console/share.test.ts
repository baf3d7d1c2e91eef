import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import type { Run } from '../../src/client/run.js';
import { inScript, sharedRunIn } from '../../src/console/share/shared-run.js';
import { openProof, parseVkey } from '../ledger/verifier.js';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import { untilTrue } from '../support/until-true.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { soakIt } from '../support/soak.js';

const HOSTILE =
  'The sea </script><img src=x onerror="document.title=1"><script>document.title=2</script>\u2028<!-- end';

describe('The embedded data of a shared file', () => {
  it('cannot end their script element, and parse to the same value', () => {
    const text = inScript({ draft: HOSTILE });
    expect(text).not.to.match(/[<\u2028\u2029]/);
    expect(JSON.parse(text)).to.deep.equal({ draft: HOSTILE });
  });
});

describeInBrowser('A shared run', (browser) => {
  const dir = tempDir();
  let service: RunningService;
  let client: CouncilClient;
  let run: Run;

  before(async () => {
    const model = scriptedModel(({ answer }) => ({
      text: answer === 'draft' ? HOSTILE : JSON.stringify({ score: 9, feedback: HOSTILE }),
    }));
    service = await startService({ model, ledger: LEDGER_AT_ONCE });
    client = new CouncilClient({ url: service.url });
    run = await client.runs.start({ topic: HOSTILE });
    await run.result();
    await untilTrue(async () => (await run.proof()) !== null);
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  /** Shares the run as a file, changes the file if requested, and opens it offline. */
  async function opened(change: (text: string) => string, options = {}): Promise<Page> {
    const page = await browser.open(`${service.url}/console/runs/${run.id}`, options);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page
        .getByRole('button', { name: 'Share' })
        .click()
        .then(() => page.getByRole('button', { name: 'Record (HTML)' }).click()),
    ]);
    const file = join(dir.path, 'run.html');
    writeFileSync(file, change(readFileSync(await download.path(), 'utf8')));
    await page.context().setOffline(true);
    return await browser.open(pathToFileURL(file).href, { context: page.context() });
  }

  it('is shown offline, with hostile drafts as text and a check of its hash chain', async () => {
    const page = await opened((text) => text);
    await page.getByRole('heading', { level: 1 }).getByText('onerror').waitFor();
    const { head_hash: hash } = await run.verify();
    const seal = page.getByRole('region', { name: 'Record' });
    await seal.getByText('Record consistent').waitFor();
    await seal.getByText(hash).waitFor();
    await page.getByText(/^in the ledger at 0, checkpoint of .*\d/).waitFor();
    const shared = sharedRunIn((await page.locator('#shared-run').textContent()) ?? '');
    openProof(shared.proof?.text ?? '', parseVkey((await client.ledger()).vkey ?? ''));
    await page.getByRole('tabpanel').getByText('<script>document.title=2').waitFor();
    expect(await page.evaluate('document.images.length')).to.equal(0);
    expect(await page.title()).to.equal('Council run');
    const meta = (name: string) => page.locator(`meta[name=${name}]`).getAttribute('content');
    expect(await meta('head-hash')).to.equal(hash);
    expect(await meta('digital-source-type')).to.match(/\/trainedAlgorithmicMedia$/);

    await page.getByRole('slider', { name: 'Event shown' }).press('Home');
    await page.getByText('1/', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Trace' }).click();
    await page.getByRole('button', { name: 'Execution' }).click();
    const graph = page.getByRole('group', { name: 'Execution' });
    await graph.getByText('waiting').first().waitFor({ state: 'attached' });
    expect(await graph.getByRole('button', { name: 'Completed' }).count()).to.equal(0);
    await page.getByRole('slider', { name: 'Event shown' }).press('End');
    await graph.getByRole('button', { name: 'Completed' }).waitFor();
    await graph.getByRole('button', { name: 'Writer' }).click();
    await page.getByText('Wrote a draft').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt('has a mark at the invalid event after one character was changed', async () => {
    const page = await opened((text) => text.replace('"feedback":"The sea', '"feedback":"The tea'), {
      isDark: true,
      width: 360,
    });
    const seal = page.getByRole('region', { name: 'Record' });
    await seal.getByText('Record damaged').waitFor();
    const { seq } = (await events(run)).find(
      ({ type, data }) => type === 'NodeCompleted' && 'score' in data.output,
    ) ?? { seq: -1 };
    await seal.getByText(`Event ${seq} is invalid`).waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt("has the service's verification if the browser cannot verify", async () => {
    const page = await browser.open(`${service.url}/console/documents`);
    await page.context().addInitScript('delete Crypto.prototype.subtle');
    await page.goto(`${service.url}/console/runs/${run.id}`);
    const seal = page.getByRole('region', { name: 'Record' });
    await seal.getByText('Not checked in this browser').waitFor();
    const { events: count, head_hash: hash } = await run.verify();
    await seal.getByText(`Checked by the service: ${count} events, record consistent.`).waitFor();
    await seal.getByText(hash).waitFor();
  });
});

async function events(run: Run) {
  const all = [];
  for await (const event of run.events()) all.push(event);
  return all;
}
