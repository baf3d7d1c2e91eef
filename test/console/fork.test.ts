import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { changesOf, draftOf } from '../../src/console/pages/run/fork-draft.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { history, recordOf } from '../support/console-records.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

describe('The changes of a fork', () => {
  const before = draftOf(recordOf(history('fixed-graph')), 6);

  it('is undefined without a change', () => {
    expect(changesOf(before, { ...before })).to.equal(undefined);
    expect(changesOf(before, { ...before, feedback: [...before.feedback, ' '] })).to.equal(undefined);
  });

  it('contains only changed fields, with the names of the API', () => {
    const nodes = before.nodes.map((node) =>
      node.id === 'critic_agent' ? { ...node, systemPrompt: 'Be kind.' } : node,
    );
    const after = {
      ...before,
      bound: '90',
      topic: 'The lake',
      drafts: [{ node: null, text: 'Waves' }],
      score: '9,5',
      feedback: ['Go deeper'],
      nodes,
    };
    expect(changesOf(before, after)).to.deep.equal({
      input_topic: 'The lake',
      modified_state: { current_draft: 'Waves', critic_score: 9.5, feedback_history: ['Go deeper'] },
      nodes: [{ id: 'critic_agent', systemPrompt: 'Be kind.' }],
      max_node_executions: 90,
    });
  });

  it('gives each waiting branch its own draft', () => {
    const record = recordOf(history('god-modify-branches'));
    const paused = record.events.filter(({ type }) => type === 'RunPaused').map(({ seq }) => draftOf(record, seq));
    expect(paused.some(({ drafts }) => drafts.length > 1)).to.equal(true);
  });
});

describeInBrowser('Forks in the console', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([9])) });
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  it('shows the cost, starts a fork with the changes, and links the parent and the comparison', async () => {
    const run = await council.runs.start({ topic: 'The sea' });
    await run.result();
    const { seq } = (await eventsOf(council, run.id)).find(({ type }) => type === 'NodeCompleted') ?? { seq: -1 };
    const page = await browser.open(`${service.url}/console/runs/${run.id}?at=${seq}`);
    await page.getByRole('button', { name: 'Fork here' }).click();
    const dialog = page.getByRole('dialog', { name: `Fork at event ${seq}` });
    const price = dialog.getByRole('region', { name: 'Cost' });
    await price.getByText('1 result reused').waitFor();
    await price.getByText('Used so far: 1 call').waitFor();
    expect(await council.runs.count({ parent: run.id })).to.equal(0);
    expect(await faultsIn(page)).to.deep.equal([]);

    await dialog.getByLabel('Topic').fill('The lake');
    await dialog.getByText('Writer', { exact: true }).click();
    await dialog.getByLabel('Prompt of Writer').fill('Write in verse.');
    await price.getByText('1 result reused').waitFor();
    await dialog.getByRole('button', { name: 'Start fork' }).click();

    await page.getByRole('heading', { level: 1, name: 'The lake' }).waitFor();
    const forks = page.getByRole('region', { name: 'Forks' });
    await forks.getByRole('link', { name: 'The sea' }).waitFor();
    const from = forks.getByRole('link', { name: `forked at event ${seq}` });
    expect(await from.getAttribute('href')).to.equal(`/console/runs/${run.id}?at=${seq}`);
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    const [first] = await eventsOf(council, id);
    expect(first?.type === 'RunRequested' ? first.data.graph.nodes.map((node) => node.systemPrompt) : []).to.include(
      'Write in verse.',
    );
    await page.getByRole('link', { name: 'Compare with parent' }).click();
    await page.waitForURL(`**/console/compare?a=${run.id}&b=${id}`);

    await page.goto(`${service.url}/console/runs/${run.id}`);
    await page.getByRole('region', { name: 'Forks' }).getByRole('link', { name: 'The lake' }).click();
    await page.getByRole('heading', { level: 1, name: 'The lake' }).waitFor();
  });

  soakIt('show why a fork is refused, and start none', async () => {
    const run = await council.runs.start({ topic: 'The sea' });
    await run.result();
    const page = await browser.open(`${service.url}/console/runs/${run.id}?at=5`, { expectsRefusals: true });
    await page.getByRole('button', { name: 'Fork here' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Score').fill('good');
    await dialog.getByText('Enter a number from 0 to 10, or nothing').waitFor();
    expect(await dialog.getByRole('button', { name: 'Start fork' }).isDisabled()).to.equal(true);
    await dialog.getByLabel('Score').fill('9');
    await dialog.getByLabel('Iteration').fill('999999');
    await dialog.getByRole('region', { name: 'Cost' }).getByText('iteration_count').waitFor();
    await dialog.getByRole('button', { name: 'Start fork' }).click();
    await dialog.getByRole('alert').getByText('iteration_count').waitFor();
    expect(await council.runs.count({ parent: run.id })).to.equal(0);
  });
});

async function eventsOf(council: CouncilClient, id: string) {
  const events = [];
  for await (const event of council.run(id).events()) events.push(event);
  return events;
}
