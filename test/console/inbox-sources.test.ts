import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser } from '../support/console-browser.js';
import { pausedBefore } from '../support/god-run.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

const TREES = pdfWith(['Oaks are trees.']);
const MARK = `[${idOf(TREES).slice(0, 8)}:1]`;

describeInBrowser('The sources of a draft in the inbox', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService({
      model: scriptedModel([
        asks(['pdf_reader', { query: 'trees', top_k: 1 }]),
        { text: `Oaks are trees ${MARK}.` },
        { text: 'Oaks are trees.' },
      ]),
    });
    council = new CouncilClient({ url: service.url });
    await uploaded(service.url, TREES, 'trees.pdf');
  });
  after(() => service.stop());

  it('are numbers also where only the draft at the pause before cites them', async () => {
    const { id } = await council.blueprints.create({
      name: 'Readers',
      nodes: [{ id: 'reader', tools: { pdfReader: true } }, { id: 'editor' }, { id: 'last' }],
      edges: [
        { source: 'reader', target: 'editor' },
        { source: 'editor', target: 'last' },
      ],
    });
    const run = await council.runs.start({ topic: 'Trees', blueprint: id, godMode: true });
    for (const node of ['reader', 'editor']) {
      await pausedBefore(service.context, run.id, node);
      await (await run.pause())?.approve();
    }
    await pausedBefore(service.context, run.id, 'last');
    const page = await browser.open(`${service.url}/console/inbox`);
    await page.locator('.pause-card .text-diff del', { hasText: '[1]' }).waitFor();
    expect(await page.locator('.pause-card').innerText()).not.to.include(MARK);
  });
});
