import { expect } from 'chai';
import type { Run } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

const HOSTILE = '<img src=x onerror="document.title=1">';

describeInBrowser('The comparison of two runs', (browser) => {
  let service: RunningService;
  let council: CouncilClient;
  let parent: Run;
  let fork: Run;

  before(async () => {
    // A draft contains its topic, and the critic gives topics about ponds a lower score.
    const model = scriptedModel(({ answer, promptInput: { topic, label, draft } }) =>
      answer === 'draft'
        ? { text: `${draft ?? 'To begin with.'}\n\n${label} on ${topic}, which is wide.` }
        : { text: JSON.stringify({ score: topic.includes('pond') ? 8 : 9, feedback: `About ${topic}.` }) },
    );
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
    parent = await council.runs.start({ topic: `The sea ${HOSTILE}` });
    await parent.result();
    // After the master's draft.
    fork = await parent.fork({ at: 4, changes: { input_topic: 'The pond' } });
    await fork.result();
  });
  after(() => service.stop());

  const pageOf = (a: string, b: string): string => `${service.url}/console/compare?a=${a}&b=${b}`;

  it('folds equal steps of a fork and its parent, and shows differences by word', async () => {
    const page = await browser.open(pageOf(parent.id, fork.id));
    await page.getByText('B is a fork of A').waitFor();
    const steps = page.getByRole('region', { name: 'Steps' });
    const fold = steps.getByRole('button', { name: 'First 1 step equal' });
    await fold.waitFor();
    expect(await steps.getByRole('article').count()).to.equal(2);
    const critics = steps.getByRole('article', { name: /^Critic/ });
    await critics.getByText('score 9').waitFor();
    await critics.getByText('score 8').waitFor();
    const writers = steps.getByRole('article', { name: /^Writer/ });
    await writers.getByText('Draft', { exact: true }).click();
    await writers.locator('ins', { hasText: 'pond' }).waitFor();
    await writers.locator('del', { hasText: 'sea' }).waitFor();
    await fold.click();
    expect(await steps.getByRole('article').count()).to.equal(3);
    await page.getByRole('region', { name: 'Final drafts' }).locator('del', { hasText: HOSTILE }).waitFor();
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) }).getByRole('cell');
    expect(await row('Score').allInnerTexts()).to.deep.equal(['9', '8']);
    expect(await row('Calls').allInnerTexts()).to.deep.equal(['3', '2']);
    expect(await row('Tokens in').allInnerTexts()).to.deep.equal(['30', '20']);
    expect(await row('Cost').allInnerTexts()).to.deep.equal(['not reported', 'not reported']);
  });

  soakIt('links the event of each step', async () => {
    const page = await browser.open(pageOf(fork.id, parent.id));
    await page.getByText('A is a fork of B').waitFor();
    const critics = page.getByRole('article', { name: /^Critic/ });
    expect(await critics.getByRole('link').nth(1).getAttribute('href')).to.equal(`/console/runs/${parent.id}?at=6`);
    await page.getByRole('link', { name: 'Swap sides' }).click();
    await page.getByText('B is a fork of A').waitFor();
  });

  soakIt('is updated while a run continues, and shows decisions', async () => {
    const blueprint = await council.blueprints.create({ name: 'One', nodes: [{ id: 'author', label: 'Author' }] });
    const [one, other] = await Promise.all(
      ['First', 'Second'].map((topic) => council.runs.start({ topic, blueprint, godMode: true })),
    );
    if (one === undefined || other === undefined) throw new Error('Two runs were to start');
    const page = await browser.open(pageOf(one.id, other.id));
    await page.getByText('Neither run has started.').waitFor();
    await (await one.pause())?.approve({ comment: 'Well then' });
    await page.getByText('only in A').waitFor();
    await page.getByText(/saying “Well then”/).waitFor();
    await (await other.pause())?.approve();
    await page.getByText('different').waitFor();
  });

  soakIt('reports that a run is not chosen or unknown', async () => {
    const page = await browser.open(`${service.url}/console/compare?a=${parent.id}`, { expectsRefusals: true });
    await page.getByRole('link', { name: 'the list of runs' }).waitFor();
    await page.goto(pageOf(parent.id, '00000000-0000-4000-8000-000000000000'));
    await page.getByRole('heading', { name: 'One of these runs does not exist' }).waitFor();
  });
});
