import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { Run } from '../../src/client/run.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

const DRAFT = `# A plan for the harbour

Ships carry **most** goods, ~~not~~ rarely people &ndash; 5&nbsp;% &amp; falling. See [the survey](https://example.org/survey).[^1]

| Item      | Share | Remark                                                        |
|:----------|------:|---------------------------------------------------------------|
| Quay wall |  40 % | Steel prices may rise by a third before the work has begun    |

- [x] Ask the fishers
- [ ] Count the ships

\`\`\`ts
const harbour = openHarbour({ name: 'North', quays: 12, depthMetres: 9.5, isFreeOfIceInWinter: true, lights: 90 });
\`\`\`

---

[^1]: Counted by the harbour office.`;

describeInBrowser('A draft in Markdown', (browser) => {
  let service: RunningService;
  let run: Run;

  before(async () => {
    const model = scriptedModel(({ answer }) => ({
      text: answer === 'draft' ? DRAFT : JSON.stringify({ score: 9, feedback: 'Good' }),
    }));
    service = await startService({ model });
    run = await new CouncilClient({ url: service.url }).runs.start({ topic: 'The harbour' });
    await run.result();
  });
  after(() => service.stop());

  it('shows tables, tasks, footnotes and links, fits into the page, and has no accessibility fault in any theme or width', async () => {
    const page = await browser.open(`${service.url}/console/runs/${run.id}`);
    const draft = page.getByRole('region', { name: 'Draft' });
    await draft.getByRole('heading', { level: 3, name: 'A plan for the harbour' }).waitFor();
    await draft.getByText('rarely people – 5\u{A0}% & falling.').waitFor();
    expect(await draft.getByRole('cell', { name: 'Quay wall' }).count()).to.equal(1);
    expect(await draft.getByRole('checkbox', { name: 'Done', checked: true, disabled: true }).count()).to.equal(1);
    expect(await draft.getByRole('link', { name: 'the survey' }).getAttribute('rel')).to.include('noopener');
    expect(await draft.getByRole('complementary').innerText()).to.match(/^1\s+Counted by the harbour office\.$/);
    await page.getByText('Record consistent').waitFor();
    await page.getByText('This run has no forks').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt('appears as plain text if the Markdown parser cannot load, and a graph shows an error', async () => {
    const page = await browser.open(`${service.url}/console/documents`, { expectsRefusals: true });
    await page.context().route(/\/(markdown|graph-layout)-\w+\.js$/, (asked) => asked.fulfill({ status: 404 }));
    await page.goto(`${service.url}/console/runs/${run.id}`);
    await page.getByText('| Quay wall | 40 % |').waitFor();
    await page.getByRole('button', { name: 'Trace' }).click();
    await page.getByRole('alert').getByText('A part of this page could not load.').waitFor();
    await page.context().unroute(/\/(markdown|graph-layout)-\w+\.js$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Critic' }).waitFor();
    await page.getByRole('button', { name: 'Result' }).click();
    await page.getByRole('cell', { name: 'Quay wall' }).waitFor();
  });
});
