import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { present } from '../../src/system/element.js';
import { bodyOf } from '../../src/console/pages/blueprint/draft.js';
import { STARTER } from '../../src/console/pages/blueprint/starter.js';
import type { Locator, Page } from 'playwright-core';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const HOSTILE = '<img src=x onerror="document.title=1"> & "quotes" \u202Eevil';

/** For each node with a fault and outgoing edges, whether the mark of the fault overlaps the handle for edges. */
const FAULTS_OVER_PORTS = `[...document.querySelectorAll('.graph-place')].flatMap((place) => {
  const [fault, port] = ['.graph-fault', '.graph-port'].map((part) => place.querySelector(part)?.getBoundingClientRect());
  return fault && port ? [fault.top < port.bottom] : [];
})`;

describeInBrowser('The list of blueprints', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
    await council.blueprints.create({ id: 'pair', name: 'Pair', nodes: [{ id: 'a' }, { id: 'b' }] });
    await council.blueprints.create({ name: HOSTILE, nodes: [{ id: 'a' }] });
  });
  after(() => service.stop());

  it('starts a run of a blueprint, and opens its page', async () => {
    const page = await browser.open(`${service.url}/console/blueprints?q=pair`);
    await page.getByRole('button', { name: 'Start a run of Pair' }).click();
    await page.getByLabel('Topic').fill('The sea');
    await page.getByLabel('God Mode').check();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.waitForURL(/\/console\/runs\/[0-9a-f-]{36}/);
    const [, id = ''] = /runs\/([0-9a-f-]{36})/.exec(page.url()) ?? [];
    const { blueprint_id: blueprint, execution_mode: mode } = await council.run(id).record();
    expect([blueprint, mode]).to.deep.equal(['pair', 'god-mode']);
  });

  it('deletes a blueprint only after confirmation', async () => {
    await council.blueprints.create({ id: 'gone', name: 'Soon gone', nodes: [{ id: 'a' }] });
    const page = await browser.open(`${service.url}/console/blueprints`);
    const remove = page.getByRole('button', { name: 'Delete Soon gone' });
    await remove.click();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await remove.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Deleted the council “Soon gone”').waitFor();
    expect(await remove.count()).to.equal(0);
    expect(await page.getByRole('link', { name: 'Pair', exact: true }).count()).to.equal(1);
  });
});

describeInBrowser('The editor of a blueprint', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  /** The control of a node in the graph, by its label. */
  const node = (page: Page, label: string): Locator =>
    page.locator('[data-node]').getByRole('button').filter({ hasText: label });
  /** The control of an edge in the graph, by its accessible name. */
  const edge = (page: Page, words: string | RegExp): Locator => page.getByRole('button', { name: words });
  async function saved(draft = STARTER): Promise<string> {
    return (await council.blueprints.create(bodyOf(draft))).id;
  }
  const urlOf = (id: string, more = ''): string => `${service.url}/console/blueprints/${id}${more}`;

  it('creates a blueprint by keyboard, shows a bad condition at its edge, undoes it, and saves', async () => {
    const page = await browser.open(urlOf('new'));
    await page.getByRole('group', { name: 'Council graph' }).focus();
    await page.keyboard.press('n');
    await page.keyboard.type('Writer');
    await node(page, 'Writer').focus();
    await page.keyboard.press('n');
    await page.keyboard.type('Critic');
    await node(page, 'Writer').focus();
    await page.keyboard.press('c');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await edge(page, 'Writer to Critic').waitFor();
    // Now the edge is selected, not the node from which it was drawn.
    await page.keyboard.press('Delete');
    await edge(page, 'Writer to Critic').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+z');
    await edge(page, 'Writer to Critic').waitFor();
    await node(page, 'Critic').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Connect to…').focus();
    await page.keyboard.type('Writer');
    await page.getByRole('button', { name: 'Connect', exact: true }).press('Enter');
    await edge(page, 'Critic back to Writer').focus();
    await page.keyboard.press('Enter');
    await page.getByText('Invalid: a run would fail').waitFor();
    expect(await page.evaluate(FAULTS_OVER_PORTS)).to.deep.equal([false]);
    await page.getByRole('button', { name: 'On a condition' }).press('Enter');
    await page.getByLabel('Condition', { exact: true }).fill('score <');
    await edge(page, /Critic back to Writer, if score <, Invalid at character 8/).waitFor();
    await page.getByText('Invalid: a run would fail').waitFor();
    await page.keyboard.press('Control+z');
    await edge(page, 'Critic back to Writer, if rework').waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved as version 1').waitFor();
    const { nodes, edges } = await council.blueprints.get(decodeURIComponent(page.url().split('/').at(-1) ?? ''));
    expect(nodes.map(({ label }) => label)).to.deep.equal(['Writer', 'Critic']);
    expect(edges.map(({ condition }) => condition)).to.deep.equal([null, 'rework']);
  });

  soakIt('moves a node by Shift and arrows and by mouse, and deletes it; each is undone', async () => {
    const id = await saved();
    const page = await browser.open(urlOf(id));
    await node(page, 'Editor').focus();
    await page.keyboard.press('Shift+ArrowRight');
    await page.getByText('unsaved changes').waitFor();
    const box = await node(page, 'Critic').boundingBox();
    if (box === null) throw new Error('The node is not shown');
    await page.mouse.move(box.x + 20, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + 120, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await node(page, 'Writer').focus();
    await page.keyboard.press('Delete');
    await node(page, 'Writer').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+z');
    await node(page, 'Writer').waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved as version 2').waitFor();
    const { nodes, edges } = await council.blueprints.get(id);
    expect(edges).to.have.length(3);
    expect(new Set(nodes.map(({ position }) => JSON.stringify(position))).size).to.equal(3);
  });

  soakIt('draws a wide council at a readable size, moves it sideways, and shows a new member', async () => {
    const experts = Array.from({ length: 9 }, (_, at) => ({ id: `e${at}`, label: `Expert ${at}` }));
    const id = await saved({
      name: 'Wide',
      nodes: [{ id: 'chief', label: 'Chief' }, ...experts],
      edges: experts.map((expert) => ({ id: expert.id, source: 'chief', target: expert.id })),
    });
    const page = await browser.open(urlOf(id));
    const graph = page.getByRole('group', { name: 'Council graph' });
    await node(page, 'Chief').waitFor();
    const boxOf = async (part: Locator) => present(await part.boundingBox(), 'box');
    const [view, chief] = [await boxOf(graph), await boxOf(node(page, 'Chief'))];
    expect(chief.height / 56, 'scale').to.be.closeTo(0.8, 0.01);
    expect(chief.x + chief.width / 2).to.be.closeTo(view.x + view.width / 2, 2);
    await graph.hover();
    await page.mouse.wheel(120, 0);
    await untilTrue(async () => Math.round((await boxOf(node(page, 'Chief'))).x) === Math.round(chief.x - 120));
    await node(page, 'Expert 0').focus();
    await page.keyboard.press('n');
    await untilTrue(async () => {
      const added = await boxOf(node(page, 'Member 11'));
      return added.x >= view.x && added.x + added.width <= view.x + view.width;
    });
  });

  soakIt('compares two versions, and restores one as a new version', async () => {
    const id = await saved();
    const page = await browser.open(urlOf(id));
    await node(page, 'Editor').click();
    await page.getByLabel('System prompt').fill('Polish the draft and shorten it.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved as version 2').waitFor();
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('insertion').filter({ hasText: 'shorten' }).waitFor();
    await page.getByRole('button', { name: /^Version 1/ }).click();
    await page.waitForURL(/[?&]version=1/);
    await page.getByRole('button', { name: 'Restore this version' }).click();
    await page.getByText('Restored version 1 as version 3').waitFor();
    const { version, nodes } = await council.blueprints.get(id);
    expect([version, nodes[2]?.systemPrompt]).to.deep.equal([3, STARTER.nodes[2]?.systemPrompt]);
  });

  it("does not overwrite another user's version without confirmation", async () => {
    const id = await saved();
    const page = await browser.open(urlOf(id), { expectsRefusals: true });
    await page.getByLabel('Name').fill('Mine');
    await council.blueprints.update(id, { name: 'Theirs' });
    await page.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('dialog', { name: 'Another user saved this council' });
    await dialog.getByRole('insertion').filter({ hasText: 'Theirs' }).waitFor();
    expect((await council.blueprints.get(id)).name).to.equal('Theirs');
    await dialog.getByRole('button', { name: 'Overwrite with mine' }).click();
    await page.getByText('Saved as version 3').waitFor();
    expect((await council.blueprints.get(id)).name).to.equal('Mine');
  });

  soakIt('asks before the user leaves unsaved changes', async () => {
    const page = await browser.open(urlOf(await saved()));
    await page.getByLabel('Name').fill('Changed');
    await page.getByRole('link', { name: 'Inbox' }).click();
    await page.getByRole('button', { name: 'Stay' }).click();
    expect(await page.getByLabel('Name').inputValue()).to.equal('Changed');
    await page.getByRole('link', { name: 'Inbox' }).click();
    await page.getByRole('button', { name: 'Leave without saving' }).click();
    await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
  });

  soakIt('tests an unsaved blueprint with the offline model, and links the run', async () => {
    const page = await browser.open(urlOf('new'));
    await page.getByRole('button', { name: 'Start with writer and critic' }).click();
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByLabel('Topic').fill('The sea');
    await page.getByRole('dialog').getByRole('button', { name: 'Start test run' }).click();
    const link = page.getByRole('link', { name: 'Open the run in a new tab' });
    const id = (await link.getAttribute('href'))?.split('/').at(-1) ?? '';
    expect(await council.run(id).result()).to.include({ status: 'completed' });
    expect(await page.getByText('not saved yet').count()).to.equal(1);
  });

  soakIt('sets the approvers after the deadline', async () => {
    const id = await saved();
    // The live check may report that no approver is named.
    const page = await browser.open(urlOf(id), { expectsRefusals: true });
    await page.getByText('Who approves').click();
    await page.getByLabel('Approval rule for every pause').check();
    await page.getByLabel('Deadline in minutes').fill('5');
    await page.getByLabel('When the deadline passes').selectOption('Ask other approvers');
    await page.getByLabel('Approvers after the deadline').fill('');
    await page.getByText('Enter at least one approver.').waitFor();
    await page.getByLabel('Approvers after the deadline').fill('ann, scope:admin');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2').waitFor();
    const { approvals } = await council.blueprints.get(id);
    expect(approvals?.deadline).to.deep.equal({ after_ms: 300_000, then: { escalate: ['ann', 'scope:admin'] } });
    await page.getByLabel('When the deadline passes').selectOption('Reject the run');
    expect(await page.getByLabel('Approvers after the deadline').count()).to.equal(0);
  });

  it('applies valid JSON at once, and says where JSON is invalid', async () => {
    const page = await browser.open(urlOf(await saved()));
    await page.getByRole('button', { name: 'JSON' }).click();
    const json = page.getByLabel('Council as JSON');
    const text = await json.inputValue();
    await json.fill(text.replace('"label": "Editor"', '"label": "Last", "mine": 7'));
    await node(page, 'Last').waitFor();
    await json.fill('{"name"');
    await page.getByText('Not applied').waitFor();
    await node(page, 'Last').waitFor();
    expect(text).to.include('"condition": "rework"');
  });

  soakIt('imports a file of a front end after a preview', async () => {
    const page = await browser.open(`${service.url}/console/blueprints`);
    const file = {
      nodes: [
        { id: '1', type: 'agentNode', position: { x: 5, y: 6 }, data: { label: HOSTILE, system_prompt: 'Write.' } },
        { id: '2', type: 'agentNode', data: { label: 'Reviewer', tools: ['web_search'] } },
      ],
      edges: [{ id: 'e', source: '1', target: '2', animated: true }],
    };
    await page
      .getByLabel('File to import')
      .setInputFiles({ name: 'flow.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) });
    const dialog = page.getByRole('dialog');
    await dialog.getByText(HOSTILE, { exact: true }).waitFor();
    await dialog.getByText('web search').waitFor();
    await dialog.getByRole('button', { name: 'Open in editor' }).click();
    await node(page, 'Reviewer').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved as version 1').waitFor();
    const { name, nodes, edges } = await council.blueprints.get(page.url().split('/').at(-1) ?? '');
    expect(name).to.equal('flow');
    expect(nodes[0]).to.deep.include({ systemPrompt: 'Write.', data: file.nodes[0]?.data, flowType: 'agentNode' });
    expect(edges[0]).to.include({ animated: true });
  });

  soakIt('offers templates with a picture and a purpose, to try and to use', async () => {
    const page = await browser.open(`${service.url}/console/blueprints`);
    const jury = page.getByRole('region', { name: 'Templates' }).getByRole('listitem').filter({ hasText: 'median' });
    await jury.locator('svg rect').first().waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await jury.getByRole('button', { name: /^Try/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Test without saving' });
    await dialog.getByRole('textbox', { name: 'Topic' }).fill('A bridge');
    await dialog.getByRole('button', { name: /^Start test run/ }).click();
    const trial = page.getByRole('region', { name: 'Test run' });
    await trial.getByText('completed').waitFor();
    await trial
      .getByText(/A bridge/)
      .first()
      .waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    const save = page.getByRole('button', { name: 'Save', exact: true });
    const id = page.getByRole('textbox', { name: 'Id', exact: true });
    const proposed = (await id.getAttribute('placeholder')) ?? '';
    expect(proposed).to.match(/^[a-z]+(-[a-z]+)*$/);
    await id.fill('no spaces');
    await page.getByText('Use letters, digits').waitFor();
    expect(await save.isDisabled()).to.equal(true);
    await id.fill('');
    await save.click();
    await page.getByText('Saved as version 1').waitFor();
    expect(page.url().endsWith(`/${proposed}`), page.url()).to.equal(true);
    expect(await id.count()).to.equal(0);
    await page.close();
  });

  soakIt(
    'keeps the entry of a council without a first member when a member is added, and lets the user set it',
    async () => {
      const client = new CouncilClient({ url: service.url });
      const nodes = [{ id: 'poet' }, { id: 'critic', type: 'critic' as const }];
      const edges = [
        { source: 'poet', target: 'critic' },
        { source: 'critic', target: 'poet', type: 'conditional' as const, condition: 'rework' },
      ];
      const { id } = await client.blueprints.create({ name: 'A circle', nodes, edges });
      const page = await browser.open(`${service.url}/console/blueprints/${id}`);
      await page.getByRole('button', { name: 'Add a member' }).click();
      await page.getByRole('checkbox', { name: 'A run begins here', checked: false }).waitFor();
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByText('Saved as version 2').waitFor();
      expect(await client.blueprints.get(id)).to.include({ entry: 'poet' });
      await page.getByRole('checkbox', { name: 'A run begins here' }).check();
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByText('Saved as version 3').waitFor();
      const saved = await client.blueprints.get(id);
      expect(saved.entry).to.equal(saved.nodes[2]?.id);
      await page.close();
    },
  );
});
