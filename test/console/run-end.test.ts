import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CouncilClient } from '../../src/client/client.js';
import { ModelFailed } from '../../src/errors.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const REASON = 'The context is too long';
const model = scriptedModel(({ promptInput: { label } }) =>
  label === 'Reader'
    ? { error: new ModelFailed(REASON, { kind: 'bad_request', retryable: false }) }
    : { text: 'A draft of the sea' },
);

describeInBrowser('The end of a run', (browser) => {
  let service: RunningService;
  let council: CouncilClient;
  let failed: string;

  before(async () => {
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
    const { id } = await council.blueprints.create({
      name: 'Poets',
      nodes: [
        { id: 'poet', label: 'Poet' },
        { id: 'reader', label: 'Reader' },
      ],
      edges: [{ source: 'poet', target: 'reader' }],
    });
    const run = await council.runs.start({ topic: 'The sea', blueprint: id });
    failed = run.id;
    await run.result().catch(() => undefined);
  });
  after(() => service.stop());

  soakIt('leads from the reason of a failure to the step that failed', async () => {
    const page = await browser.open(`${service.url}/console/runs/${failed}`);
    await page.getByRole('button', { name: 'Show the failed step' }).click();
    await page.waitForURL(/step=2/);
    await page.getByRole('tab', { name: 'Steps' }).waitFor();
    await page.getByText('The provider refused the request.').first().waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.close();
  });

  soakIt('gives a reader of a shared file no advice to fork, and its title the left edge', async () => {
    const page = await browser.open(`${service.url}/console/runs/${failed}`);
    await page.getByText('then fork the run before it').waitFor();
    await page.getByRole('button', { name: 'Share' }).click();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Record (HTML)' }).click();
    const dir = tempDir();
    const file = join(dir.path, 'run.html');
    writeFileSync(file, readFileSync(await (await saved).path()));
    const offline = await browser.open(pathToFileURL(file).href, { context: page.context() });
    await offline.locator('.notice.bad').getByText(REASON).waitFor();
    expect(await offline.getByText('then fork the run before it').count()).to.equal(0);
    const [title, notice] = [offline.getByRole('heading', { level: 1 }), offline.locator('.notice.bad')];
    expect((await title.boundingBox())?.x).to.equal((await notice.boundingBox())?.x);
    dir.remove();
    await page.close();
  });

  soakIt('says on the page of a run that waits what happens at its deadline', async () => {
    const { id } = await council.blueprints.create({
      name: 'Hurried',
      nodes: [{ id: 'poet' }],
      approvals: { deadline: { after_ms: 86_400_000, then: 'reject' } },
    });
    const run = await council.runs.start({ topic: 'In a hurry', blueprint: id, godMode: true });
    await untilTrue(async () => (await run.pause()) !== null);
    const page = await browser.open(`${service.url}/console/runs/${run.id}`);
    await page
      .getByRole('listitem')
      .filter({ hasText: /^until .*, then the run is rejected$/ })
      .waitFor();
    await page.close();
  });
});
