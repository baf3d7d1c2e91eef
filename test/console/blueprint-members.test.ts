import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { soakIt } from '../support/soak.js';

describeInBrowser('The editor of a council with several minds', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  const node = (page: Page, label: string): Locator =>
    page.locator('[data-node]').getByRole('button').filter({ hasText: label });
  const urlOf = (id: string): string => `${service.url}/console/blueprints/${id}`;
  const idOf = (page: Page): string => decodeURIComponent(page.url().split('/').at(-1) ?? '');

  it('builds a peer review of three members by keyboard alone, and its run completes', async () => {
    const page = await browser.open(urlOf('new'));
    const { keyboard } = page;
    // Typed letters choose an option of a list, as for any select.
    const chooseRole = async (letters: string): Promise<void> => {
      await page.getByLabel('Role').focus();
      await keyboard.type(letters);
    };
    await page.getByRole('group', { name: 'Council graph' }).focus();
    await keyboard.press('n');
    await keyboard.type('Panel');
    await chooseRole('Panel');
    await page.getByRole('group', { name: 'Members' }).waitFor();
    for (const [index, label] of ['North', 'East', 'South'].entries()) {
      await page.locator('.editor-members summary').nth(index).focus();
      await keyboard.press('Enter');
      await page
        .getByRole('group', { name: `Member ${index + 1}` })
        .getByLabel('Member label')
        .focus();
      await keyboard.press('Control+a');
      await keyboard.type(label);
      await page.locator('.editor-members summary').nth(index).focus();
      await keyboard.press('Enter');
    }
    await page.getByLabel('Answers that are enough').focus();
    await keyboard.type('2');
    await page.getByLabel('Seconds for the other members after that').focus();
    await keyboard.type('1.5');
    for (const [label, role, from] of [
      ['Review', 'Rank', 'Panel'],
      ['Chair', 'Writer', 'Review'],
    ] as const) {
      await page.getByRole('group', { name: 'Council graph' }).focus();
      await keyboard.press('n');
      await keyboard.type(label);
      await chooseRole(role);
      await node(page, from).focus();
      await keyboard.press('Enter');
      await page.getByLabel('Connect to…').focus();
      await keyboard.type(label);
      await page.getByRole('button', { name: 'Connect', exact: true }).press('Enter');
      await page.getByRole('button', { name: `${from} to ${label}` }).waitFor();
    }
    await node(page, 'Review').focus();
    await keyboard.press('Enter');
    await page.getByLabel('Best answers that stay').focus();
    await keyboard.type('2');
    await page.getByText('Valid', { exact: true }).waitFor();
    await keyboard.press('Control+s');
    await page.getByText('Saved as version 1').waitFor();
    const { nodes, edges } = await council.blueprints.get(idOf(page));
    expect(nodes.map(({ type, label }) => [type, label])).to.deep.equal([
      ['panel', 'Panel'],
      ['rank', 'Review'],
      ['agent', 'Chair'],
    ]);
    expect(nodes[0]?.members?.map((member) => typeof member !== 'string' && member.label)).to.deep.equal([
      ...['North', 'East', 'South'],
    ]);
    expect(nodes[0]).to.include({ quorum: 2, graceMs: 1_500 });
    expect(nodes[1]).to.include({ keep: 2 });
    expect(edges).to.have.lengthOf(2);
    const run = await council.runs.start({ topic: 'The sea', blueprint: idOf(page) });
    expect(await run.result()).to.include({ status: 'completed' });
  });

  soakIt('suggests the default model of each provider for nodes and members, and takes any other', async () => {
    const { id } = await council.blueprints.create({ name: 'Jury', nodes: [{ id: 'jury', label: 'Jury' }] });
    const page = await browser.open(urlOf(id));
    await node(page, 'Jury').click();
    const model = page.getByLabel('Model', { exact: true });
    const list = `datalist#${await model.getAttribute('list')}`;
    await page.locator(`${list} option[value="offline/offline-1"]`).waitFor({ state: 'attached' });
    await page.getByLabel('Role').selectOption('Jury: a critic with several members');
    await page.locator('summary', { hasText: 'Member 1' }).click();
    const ofMember = page.getByRole('group', { name: 'Member 1' }).getByLabel('Member model');
    expect(await ofMember.getAttribute('list')).to.equal(await model.getAttribute('list'));
    await model.fill('far/away');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2').waitFor();
    expect((await council.blueprints.get(id)).nodes[0]?.model).to.equal('far/away');
  });

  soakIt('makes a jury by mouse: members are added, moved, edited and removed', async () => {
    const { id } = await council.blueprints.create({
      name: 'Jury',
      nodes: [
        { id: 'writer', label: 'Writer' },
        { id: 'jury', label: 'Jury' },
      ],
      edges: [{ source: 'writer', target: 'jury' }],
    });
    const page = await browser.open(urlOf(id));
    await node(page, 'Jury').click();
    await page.getByLabel('Role').selectOption('Jury: a critic with several members');
    await page.getByRole('button', { name: 'Add a panel member' }).click();
    const fourth = page.getByRole('group', { name: 'Member 4' });
    await fourth.getByLabel('Member model').fill('offline');
    await fourth.getByLabel('Member system prompt').fill('Be strict.');
    await fourth.getByLabel('Member temperature').fill('0.5');
    await fourth.getByLabel('Member maximum of output tokens').fill('500');
    await fourth.getByLabel('Member fallback models').fill('offline, offline-2');
    await fourth.getByRole('button', { name: 'Move Member 4 up' }).click();
    await fourth.getByLabel('Member id').fill('strict');
    await page.getByLabel('Score of the jury').selectOption('Lowest score');
    await page.getByText('Model call settings').click();
    await page.getByLabel('Fallback models', { exact: true }).fill('offline-3');
    await page.locator('summary', { hasText: 'Member 1' }).click();
    await page.getByRole('button', { name: 'Remove Member 1' }).click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2').waitFor();
    const jury = (await council.blueprints.get(id)).nodes[1];
    expect(jury).to.deep.include({ type: 'critic', aggregate: 'lowest', fallbacks: ['offline-3'] });
    expect(jury?.members).to.deep.equal([
      { id: 'm2', label: 'Member 2' },
      {
        id: 'strict',
        label: 'Member 4',
        model: 'offline',
        systemPrompt: 'Be strict.',
        temperature: 0.5,
        maxOutputTokens: 500,
        fallbacks: ['offline', 'offline-2'],
      },
      { id: 'm3', label: 'Member 3' },
    ]);
  });

  soakIt(
    'keeps an id that another member has in the field, with what is wrong, until it is changed or taken back',
    async () => {
      const { id } = await council.blueprints.create({
        name: 'Twins',
        nodes: [{ id: 'panel', label: 'Panel', type: 'panel', members: ['offline', 'offline'] }],
      });
      const page = await browser.open(urlOf(id));
      await node(page, 'Panel').click();
      await page.locator('summary', { hasText: 'm2' }).click();
      const field = page.getByRole('group', { name: 'm2' }).getByLabel('Member id');
      await field.fill('m1');
      await field.press('Tab');
      await page.getByText('Another member has the id “m1”. The id is still “m2”.').waitFor();
      expect(await field.inputValue()).to.equal('m1');
      await field.press('Escape');
      expect(await field.inputValue()).to.equal('m2');
    },
  );

  soakIt('says that a rank without a panel is a warning, and not that the council is valid without one', async () => {
    const { id } = await council.blueprints.create({ name: 'Alone', nodes: [{ id: 'w', label: 'Writer' }] });
    const page = await browser.open(urlOf(id));
    await node(page, 'Writer').click();
    await page.getByLabel('Role').selectOption('Rank: orders the answers of a panel');
    await page.getByText('Valid, with 1 warning', { exact: true }).waitFor();
    await page.getByText('No path from the entry leads through a panel to the rank').first().waitFor();
  });

  soakIt('gives a rank reviewers of its own, or those of its panel', async () => {
    const { id } = await council.blueprints.create({
      name: 'Ranked',
      nodes: [
        { id: 'panel', label: 'Panel', type: 'panel', members: ['offline', 'offline'] },
        { id: 'rank', label: 'Rank' },
        { id: 'judge', label: 'Judge' },
      ],
      edges: [
        { source: 'panel', target: 'rank' },
        { source: 'rank', target: 'judge' },
      ],
    });
    const page = await browser.open(urlOf(id));
    await node(page, 'Rank').click();
    await page.getByLabel('Role').selectOption('Rank: orders the answers of a panel');
    const own = page.getByLabel('Reviewers of its own, instead of the members of the panel');
    await own.check();
    await page.getByRole('button', { name: 'Add a reviewer' }).click();
    await page.getByRole('group', { name: 'Member 4' }).getByLabel('Member label').fill('Outsider');
    await node(page, 'Judge').click();
    await page.getByLabel('Role').selectOption('Judge: compares the answers of a panel');
    expect(await page.getByRole('group', { name: 'Members' }).count()).to.equal(0);
    await page.getByText('Valid', { exact: true }).waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved as version 2').waitFor();
    const [, rank, judge] = (await council.blueprints.get(id)).nodes;
    expect([rank?.type, judge?.type]).to.deep.equal(['rank', 'judge']);
    expect(rank?.members?.[3]).to.deep.include({ label: 'Outsider' });
    await node(page, 'Rank').click();
    await own.uncheck();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved as version 3').waitFor();
    expect((await council.blueprints.get(id)).nodes[1]).not.to.have.property('members');
  });

  soakIt('keeps the focus on the member that moves by keyboard', async () => {
    const { id } = await council.blueprints.create({
      name: 'Panel',
      nodes: [{ id: 'panel', label: 'Panel', type: 'panel', members: ['one', 'two', 'three'] }],
    });
    const page = await browser.open(urlOf(id));
    await node(page, 'Panel').click();
    await page.locator('.editor-members summary').first().click();
    await page.getByRole('button', { name: 'Move m1 down' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    const names = page.locator('.editor-members .member-name');
    await names.nth(2).getByText('m1').waitFor();
    expect(await names.allTextContents()).to.deep.equal(['m2', 'm3', 'm1']);
    expect(await page.evaluate('document.activeElement.textContent')).to.include('m1');
  });

  soakIt('shows what the service finds wrong at the field', async () => {
    const { id } = await council.blueprints.create({
      name: 'Panel',
      nodes: [{ id: 'panel', label: 'Panel', type: 'panel', members: ['offline', 'offline'] }],
    });
    const page = await browser.open(urlOf(id), { expectsRefusals: true });
    await node(page, 'Panel').click();
    const quorum = page.getByLabel('Answers that are enough');
    await quorum.fill('5');
    await page.locator('.field', { has: quorum }).getByText('less than or equal to 2').waitFor();
    expect(await quorum.getAttribute('aria-invalid')).to.equal('true');
    await quorum.fill('');
    await page.locator('.editor-members summary').first().click();
    const heat = page.getByRole('group', { name: 'm1' }).getByLabel('Member temperature');
    await heat.fill('9');
    await page.locator('.editor-members .field').getByRole('alert').getByText('equal to 2').waitFor();
    await page.locator('.editor-members').getByText('has an error').waitFor();
    const other = page.locator('.editor-members details').nth(1);
    await other.locator('summary').click();
    await other.getByLabel('Member temperature').fill('-1');
    await other.locator('summary').getByText('has an error').waitFor();
    expect(await page.locator('.editor-members summary').getByText('has an error').count()).to.equal(2);
    await heat.fill('');
    await other.getByLabel('Member temperature').fill('');
    await page.locator('.editor-members').getByText('has an error').first().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove m1' }).click();
    await page.locator('.editor-members > .fault').getByText('at least 2 items').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });
});
