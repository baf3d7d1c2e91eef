import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import type { GateDecidedData } from '../../src/generated/schemas.js';
import type { PageOptions } from '../support/console-browser.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { freePort } from '../support/free-port.js';
import { approvePath, pausedBefore, stateOf } from '../support/god-run.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { factsOf, recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Reply } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const HOSTILE = '# Title\n\n<img src=x onerror="document.title = 1">\n\n<script>document.title = 2</script> **end**';

const PAIR = {
  nodes: [{ id: 'poet' }, { id: 'reader' }],
  edges: [{ source: 'poet', target: 'reader' }],
};
const FORKED = {
  nodes: [{ id: 'poet' }, { id: 'left' }, { id: 'right' }, { id: 'join' }],
  edges: ['left', 'right'].flatMap((side) => [
    { source: 'poet', target: side },
    { source: side, target: 'join' },
  ]),
};

/** The first draft has one line, and each further draft has one more. */
const model = scriptedModel(({ promptInput: { draft, topic } }): Reply => {
  if (topic === 'Hostile') return { text: HOSTILE };
  return { text: draft === null ? 'The sea is wide and blue.' : `${draft.replace('wide', 'very wide')}\nIt is deep.` };
});

interface God {
  /** Ids of the runs that it has started. */
  readonly started: string[];
  readonly rest: RestClient;
  readonly service: () => RunningService;
}

/** Starts a run of a new council in God Mode. Resolves with its id at its first pause. */
async function paused({ started, rest, service }: God, topic: string, blueprint: object = PAIR): Promise<string> {
  const saved = await rest.post('/api/councils/', { name: 'Poets', ...blueprint });
  const { id } = rest.read(saved, 201, 'blueprint.json');
  const reply = await rest.post(`/api/councils/${id}/run`, { input_topic: topic, god_mode: true });
  const { run_id: runId } = rest.read(reply, 202, 'run-start.json');
  started.push(runId);
  await pausedBefore(service().context, runId, 'poet');
  return runId;
}

/** The card of the selected pause. */
function cardOf(page: Page, topic: string): Locator {
  return page.getByRole('article', { name: topic });
}

/** The rows of the list of all pauses. */
function rowsOf(page: Page): Locator {
  return page.getByRole('navigation', { name: 'Waiting runs' }).getByRole('listitem');
}

function rowOf(page: Page, topic: string): Locator {
  return rowsOf(page).getByRole('button', { name: topic });
}

const button = (at: Page | Locator, name: string): Locator => at.getByRole('button', { name, exact: true });

describeInBrowser('The inbox', (browser) => {
  let service: RunningService;
  let god: God;
  const keys = { ann: '', ben: '', eve: '' };

  before(async () => {
    service = await startService({ model });
    const rest = restWith(service.url, await addFirstKey(service.url));
    god = { started: [], rest, service: () => service };
    for (const name of ['ann', 'ben'] as const) {
      keys[name] = await addKey(rest, { name, scopes: ['read', 'run', 'approve'] });
    }
    keys.eve = await addKey(rest, { name: 'eve', scopes: ['read'] });
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });
  // Cancels the runs that a test leaves behind, and ignores refusals.
  afterEach(async () => {
    for (const runId of god.started.splice(0)) await god.rest.post(`/api/councils/run/${runId}/cancel`);
  });

  const openAs = async (who: keyof typeof keys, query = '', options: PageOptions = {}): Promise<Page> => {
    const page = await browser.open(`${service.url}/console/inbox${query}`, { ...options, expectsRefusals: true });
    // Decisions leave at once: another file tests how they are undone.
    await page.evaluate(`localStorage.setItem('council.settings ${who}', '{"undo":false}')`);
    await page.getByLabel('Key').fill(keys[who]);
    await button(page, 'Sign in').click();
    await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor();
    return page;
  };
  const decisionsOn = async (runId: string): Promise<readonly GateDecidedData[]> =>
    factsOf(await recordOf(service.context.log, runId), 'GateDecided');

  it('decides a run in God Mode to its end by keyboard', async () => {
    const page = await openAs('ann');
    await page.getByText('Nothing waits').waitFor();
    const runId = await paused(god, 'By keys');
    await cardOf(page, 'By keys').getByText('next: poet').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await cardOf(page, 'By keys').getByText('Next: poet').waitFor();
    await page.keyboard.press('a');
    await cardOf(page, 'By keys').getByText('Next: reader').waitFor();
    await page.keyboard.press('a');
    await page.getByText('Nothing waits').waitFor();
    expect(await god.rest.until(runId, isOver)).to.include({ status: 'completed' });
    expect((await decisionsOn(runId)).map(({ actor, action }) => [actor, action])).to.deep.equal([
      ['ann', 'approve'],
      ['ann', 'approve'],
    ]);
  });

  it('approves nothing by key before the draft is shown', async () => {
    const page = await openAs('ann');
    await page.getByText('Nothing waits').waitFor();
    let show = (): void => undefined;
    const held = new Promise<void>((resolve) => (show = resolve));
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    await page.route(/\/next$/, async (route) => {
      asked();
      await held;
      await route.continue();
    });
    const runId = await paused(god, 'Unseen');
    await isAsked;
    await cardOf(page, 'Unseen').getByLabel('Comment').waitFor();
    await page.keyboard.press('a');
    show();
    await cardOf(page, 'Unseen').getByText('Next: poet').waitFor();
    expect(await button(cardOf(page, 'Unseen'), 'Approve').isEnabled()).to.equal(true);
    expect(await decisionsOn(runId)).to.deep.equal([]);
    await page.keyboard.press('a');
    await cardOf(page, 'Unseen').getByText('Next: reader').waitFor();
    expect(await decisionsOn(runId)).to.have.length(1);
  });

  soakIt('opens the card in the URL, even if another waits longer', async () => {
    await paused(god, 'Waits longer');
    const named = await paused(god, 'Named');
    const page = await openAs('ann', `?run=${named}`);
    await cardOf(page, 'Named').getByLabel('Comment').waitFor();
    expect(new URL(page.url()).searchParams.get('run')).to.equal(named);
    expect(await cardOf(page, 'Waits longer').getByLabel('Comment').count()).to.equal(0);
  });

  soakIt('says that the run in the URL does not wait, before the user decides another one', async () => {
    await paused(god, 'Waits longer');
    const decided = await paused(god, 'Named');
    await god.rest.post(approvePath(decided), { action: 'reject' });
    const page = await openAs('ann', `?run=${decided}`);
    await cardOf(page, 'Waits longer').getByLabel('Comment').waitFor();
    const notice = page.getByText('The run of this link does not wait for you');
    await notice.waitFor();
    expect(await notice.getByRole('link', { name: 'Open it' }).getAttribute('href')).to.equal(
      `/console/runs/${decided}`,
    );
    await button(page, 'Reject').click();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    expect(await notice.count()).to.equal(0);
  });

  soakIt('marks the runs on which the user has voted', async () => {
    await paused(god, 'Two must agree', { ...PAIR, approvals: { quorum: 2 } });
    await paused(god, 'Another');
    const page = await openAs('ann');
    await rowOf(page, 'Two must agree').getByText('of 2 votes').waitFor();
    expect(await page.getByText('you voted').count()).to.equal(0);
    await button(cardOf(page, 'Two must agree'), 'Approve').click();
    await rowOf(page, 'Two must agree').getByText('1 of 2 votes, you voted').waitFor();
  });

  it("has no control with the word Approve before the card's own, whatever the topics say", async () => {
    await paused(god, 'Approve the plan');
    await paused(god, 'Do not Approve it');
    const page = await openAs('ann');
    await rowOf(page, 'Do not Approve it').waitFor();
    const names = await page.evaluate<string[]>(
      `[...document.querySelectorAll('a, button, input, summary')].map((each) => each.ariaLabel ?? each.innerText)`,
    );
    expect(names.find((name) => name.includes('Approve'))).to.match(/^Approve\s*a$/);
  });

  soakIt('walks the rows of the list by the arrow keys, and the focus follows', async () => {
    await paused(god, 'First');
    await paused(god, 'Second');
    const page = await openAs('ann');
    await cardOf(page, 'First').waitFor();
    await rowOf(page, 'First').focus();
    await page.keyboard.press('ArrowDown');
    await cardOf(page, 'Second').waitFor();
    await untilTrue(async () => (await page.evaluate<string>('document.activeElement.innerText')).startsWith('Second'));
    await page.keyboard.press('ArrowUp');
    await cardOf(page, 'First').waitFor();
  });

  it('walks the cards by keyboard, rejects with a comment, and ignores keys typed into a field', async () => {
    const ids = [await paused(god, 'One'), await paused(god, 'Two'), await paused(god, 'Three')];
    const page = await openAs('ann');
    const looked = page.locator('article[aria-current] h2');
    await looked.getByText('One').waitFor();
    await rowOf(page, 'Three').waitFor();
    expect(await rowsOf(page).count()).to.equal(3);
    for (const [key, topic] of [
      ['j', 'Two'],
      ['j', 'Three'],
      ['k', 'Two'],
    ] as const) {
      await page.keyboard.press(key);
      await looked.getByText(topic).waitFor();
    }
    await untilTrue(() => page.url().includes(ids[1] ?? 'none'));
    await page.keyboard.press('r');
    await page.keyboard.type('a jar of keys');
    await page.keyboard.press('Enter');
    await cardOf(page, 'Two').waitFor({ state: 'detached' });
    await looked.getByText('Three').waitFor();
    const [decided] = await decisionsOn(ids[1] ?? '');
    expect(decided).to.include({ action: 'reject', comment: 'a jar of keys', actor: 'ann' });
    expect(await rowsOf(page).count()).to.equal(2);
    expect(await decisionsOn(ids[0] ?? '')).to.deep.equal([]);
  });

  for (const { when, between } of [
    { when: 'at the same time', between: '' },
    { when: 'before the focus has followed', between: 'await Promise.resolve().then(() => undefined);' },
  ]) {
    it(`rejects the card selected ${when}, and does not treat the typed reason as shortcuts`, async () => {
      await paused(god, 'One');
      const runId = await paused(god, 'Two');
      const page = await openAs('ann');
      await page.locator('article[aria-current]').getByText('Open run').waitFor();
      await rowOf(page, 'Two').waitFor();
      await page.evaluate(`(async () => {
        const press = (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        press('j');
        ${between}
        press('r');
      })()`);
      await cardOf(page, 'Two').locator('input:focus[placeholder^="Reason"]').waitFor();
      await page.keyboard.type('a jar');
      await page.keyboard.press('Enter');
      await untilTrue(async () => (await decisionsOn(runId)).length > 0);
      const [decided] = await decisionsOn(runId);
      expect(decided).to.include({ action: 'reject', comment: 'a jar' });
    });
  }

  soakIt('ignores a shortcut right after another user decided the selected card', async () => {
    const one = await paused(god, 'One');
    const two = await paused(god, 'Two');
    const page = await openAs('ann');
    await page.locator('article[aria-current] h2').getByText('One').waitFor();
    await rowOf(page, 'Two').waitFor();
    const isBusy = page.evaluate<string>(`new Promise((resolve) => {
      const observer = new MutationObserver(() => {
        const card = document.querySelector('article[aria-current]');
        if (card === null || card.querySelector('h2').textContent !== 'Two') return;
        observer.disconnect();
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));
        requestAnimationFrame(() => resolve(document.querySelector('article[aria-current]').getAttribute('aria-busy')));
      });
      observer.observe(document.body, { subtree: true, childList: true, attributes: true });
    })`);
    const bens = restWith(service.url, keys.ben);
    expect((await bens.post(approvePath(one), { action: 'reject' })).status).to.equal(200);
    expect(await isBusy).to.equal('false');
    expect(await decisionsOn(two)).to.deep.equal([]);
    await untilTrue(async () => {
      await page.keyboard.press('a');
      return (await decisionsOn(two)).length > 0;
    });
  });

  it('shows the later of two users who decided first, and records one decision', async () => {
    const runId = await paused(god, 'Of both');
    const [anns, bens] = [await openAs('ann'), await openAs('ben')];
    await cardOf(bens, 'Of both').waitFor();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await bens.route('**/approve', async (route) => {
      await held;
      await route.continue();
    });
    await button(bens, 'Approve').click();
    await button(anns, 'Approve').click();
    await cardOf(anns, 'Of both').getByText('next: reader').waitFor();
    expect(await button(cardOf(bens, 'Of both'), 'Approve').isDisabled()).to.equal(true);
    release();
    const lost = /Too late: ann approved “Of both” .* Your approval was not recorded/;
    await bens.getByRole('status').getByText(lost).waitFor();
    await cardOf(bens, 'Of both').getByText(lost).waitFor();
    await button(bens, 'Dismiss').click();
    await cardOf(bens, 'Of both').getByText('next: reader').waitFor();
    expect(await decisionsOn(runId)).to.have.lengthOf(1);
  });

  soakIt('keeps a pause with a quorum of two until both users approve, and shows the votes', async () => {
    const runId = await paused(god, 'Of two', { ...PAIR, approvals: { by: ['ann', 'ben'], quorum: 2 } });
    const [anns, bens] = [await openAs('ann'), await openAs('ben')];
    await anns.getByLabel('Comment').fill('Fine with me');
    await button(anns, 'Approve').click();
    for (const page of [anns, bens]) {
      await cardOf(page, 'Of two').getByText('1 of 2 votes').waitFor();
      await cardOf(page, 'Of two').getByText('Fine with me').waitFor();
    }
    expect(await button(anns, 'Approve').isDisabled()).to.equal(true);
    await button(bens, 'Approve').click();
    await cardOf(anns, 'Of two').getByText('next: reader').waitFor();
    expect(await decisionsOn(runId)).to.have.lengthOf(1);
  });

  it('previews an edit as a diff, and sends only changed fields', async () => {
    const runId = await paused(god, 'To edit');
    const page = await openAs('ann');
    await button(page, 'Approve').click();
    await cardOf(page, 'To edit').getByText('next: reader').waitFor();
    await page.getByText('The sea is wide and blue.').waitFor();
    await page.keyboard.press('e');
    const dialog = page.getByRole('dialog');
    expect(await button(dialog, 'Send edit').isDisabled()).to.equal(true);
    await page.keyboard.type('Here: ');
    expect(await dialog.getByLabel('Draft', { exact: true }).inputValue()).to.equal('Here: The sea is wide and blue.');
    await dialog.getByLabel('Draft', { exact: true }).fill('The sea is wide and green.');
    await dialog.getByLabel('Score').fill('11');
    await dialog.locator('del', { hasText: 'blue' }).waitFor();
    await dialog.locator('ins', { hasText: 'green' }).waitFor();
    await button(dialog, 'Send edit').click();
    await dialog.getByRole('alert').waitFor();
    expect(await dialog.getByLabel('Score').getAttribute('aria-invalid')).to.equal('true');
    const topOf = async (label: string) => (await dialog.getByLabel(label).boundingBox())?.y;
    expect(await topOf('Route'), 'beside the field that is refused').to.equal(await topOf('Score'));
    await dialog.getByLabel('Score').fill('');
    await dialog.getByLabel('Comment').fill('Greener');
    await button(dialog, 'Send edit').click();
    await page.getByText('Nothing waits').waitFor();
    const [, decided] = await decisionsOn(runId);
    expect(decided).to.deep.include({
      action: 'modify',
      comment: 'Greener',
      modifiedState: { current_draft: 'The sea is wide and green.' },
    });
  });

  soakIt('keeps a closed edit, and shows when it is too late', async () => {
    const runId = await paused(god, 'Edited late');
    const page = await openAs('ann');
    await button(page, 'Edit').click();
    const draft = page.getByRole('dialog').getByLabel('Draft', { exact: true });
    await draft.fill('Mine');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('e');
    expect(await draft.inputValue()).to.equal('Mine');
    const ben = restWith(service.url, keys.ben);
    expect((await ben.post(approvePath(runId), { action: 'reject' })).status).to.equal(200);
    await page.getByRole('dialog').getByText('Too late: ben rejected “Edited late”').waitFor();
    expect(await button(page.getByRole('dialog'), 'Send edit').isDisabled()).to.equal(true);
    expect(await draft.inputValue()).to.equal('Mine');
  });

  soakIt('edits each of two live branches separately', async () => {
    const runId = await paused(god, 'Of branches', FORKED);
    const page = await openAs('ann');
    await button(page, 'Approve').click();
    await cardOf(page, 'Of branches').getByText('next: right').waitFor();
    await page.keyboard.press('e');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Draft for right').fill('The right sea.');
    await button(dialog, 'Send edit').click();
    await cardOf(page, 'Of branches').getByText('next: join').waitFor();
    const [, decided] = await decisionsOn(runId);
    expect(decided?.modifiedState).to.deep.equal({ branches: [{ node: 'right', current_draft: 'The right sea.' }] });
  });

  soakIt('names the member at which a draft waits by its label', async () => {
    await paused(god, 'Uneven', {
      nodes: [{ id: 'poet' }, { id: 'left' }, { id: 'right' }, { id: 'more' }, { id: 'join', label: 'The joiner' }],
      edges: [
        { source: 'poet', target: 'left' },
        { source: 'poet', target: 'right' },
        { source: 'right', target: 'more' },
        { source: 'left', target: 'join' },
        { source: 'more', target: 'join' },
      ],
    });
    const page = await openAs('ann');
    for (const next of ['left', 'more']) {
      await button(page, 'Approve').click();
      await cardOf(page, 'Uneven')
        .getByRole('heading', { name: `Next: ${next}` })
        .waitFor();
    }
    await page.getByText('Draft waiting at The joiner').waitFor();
  });

  soakIt('shows the changes of a draft since the last pause, and the draft in full', async () => {
    const three = {
      nodes: [...PAIR.nodes, { id: 'last' }],
      edges: [...PAIR.edges, { source: 'reader', target: 'last' }],
    };
    await paused(god, 'Changing', three);
    const page = await openAs('ann');
    await page.getByText('No draft yet').waitFor();
    await button(page, 'Approve').click();
    await page.getByText('The sea is wide and blue.').waitFor();
    await page.keyboard.press('a');
    await page.getByText('Changes since the last pause').waitFor();
    await page.locator('ins', { hasText: 'very' }).waitFor();
    await page.locator('ins', { hasText: 'It is deep' }).waitFor();
    await page.locator('.prose', { hasText: 'The sea is very wide and blue.' }).waitFor();
  });

  soakIt('shows the deadline with its effect, and who else may decide', async () => {
    await paused(god, 'Soon', {
      ...PAIR,
      approvals: { deadline: { after_ms: 7_200_000, then: { escalate: ['zoe'] } } },
    });
    await paused(god, 'Not mine', { ...PAIR, approvals: { by: ['ben', 'zoe'] } });
    const page = await openAs('ann');
    await cardOf(page, 'Soon')
      .getByText(/in 1 h 59 min.*then zoe may decide/)
      .waitFor();
    expect(await page.getByRole('article').count()).to.equal(1);
    await button(page, 'All').click();
    await rowOf(page, 'Not mine').waitFor();
    await untilTrue(() => page.url().includes('whose=all'));
    await page.keyboard.press('j');
    await cardOf(page, 'Not mine').getByText('Only ben, zoe may decide').waitFor();
    expect(await button(cardOf(page, 'Not mine'), 'Approve').count()).to.equal(0);
  });

  it('has no buttons for a key that may only read, and shows a hostile draft as text', async () => {
    const runId = await paused(god, 'Hostile');
    await god.rest.post(approvePath(runId), { action: 'approve' });
    const page = await openAs('eve');
    await page.getByText('<img src=x onerror="document.title = 1">').waitFor();
    expect(await page.locator('main img, main script').count()).to.equal(0);
    for (const name of ['Approve', 'Edit', 'Reject', 'For me']) expect(await button(page, name).count()).to.equal(0);
    await page.keyboard.press('a');
    await page.keyboard.press('e');
    expect(await page.getByRole('dialog').count()).to.equal(0);
    expect(await stateOf(god.rest, runId)).to.include({ paused: true });
  });

  it('counts pauses in the navigation over one connection, and in the title if notifications are on', async () => {
    await paused(god, 'Counted');
    const page = await openAs('ann');
    await cardOf(page, 'Counted').waitFor();
    let connections = 0;
    page.on('request', (request) => (connections += Number(request.url().includes('/api/approvals/stream'))));
    await page.goto(`${service.url}/console/documents`);
    const link = page.getByRole('link', { name: /^Inbox/ });
    await link.getByText('1').waitFor();
    expect(await page.title()).not.to.include('(');
    await link.click();
    await cardOf(page, 'Counted').waitFor();
    await page.getByLabel('Notify me').click();
    await untilTrue(async () => (await page.title()).startsWith('(1) '));
    await paused(god, 'Counted too');
    await untilTrue(async () => (await page.title()).startsWith('(2) '));
    await link.getByText('2').waitFor();
    expect(connections).to.equal(1);
    await page.reload();
    await untilTrue(async () => (await page.title()).startsWith('(2) '));
    await page.getByLabel('Notify me').click();
    await untilTrue(async () => !(await page.title()).includes('('));
  });

  soakIt('has no accessibility fault in any theme or width, nor has its edit dialog', async () => {
    const topic = 'Whether_a_word_that_is_much_longer_than_a_phone_is_wide_breaks';
    await paused(god, topic, { ...FORKED, approvals: { deadline: { after_ms: 50_000, then: 'reject' } } });
    const page = await openAs('ann');
    await button(page, 'Approve').click();
    await page.getByText('Draft for right').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await button(page, 'Edit').click();
    await page.getByRole('dialog').getByLabel('Draft for left').fill('Another');
    await page.locator('ins').first().waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });
});

describeInBrowser('The inbox over a restart of the service', (browser) => {
  const dir = tempDir();
  after(() => dir.remove());

  soakIt('removes decided pauses and shows new ones once', async () => {
    const settings = { model, dataDir: dir.path, port: await freePort() };
    let service = await startService(settings);
    try {
      const god = (): God => ({ started: [], rest: restClient(service.url), service: () => service });
      const before = await paused(god(), 'Before');
      const page = await browser.open(`${service.url}/console/inbox`, { expectsRefusals: true });
      await cardOf(page, 'Before').waitFor();
      await service.stop();
      await page.getByText('The service does not answer').first().waitFor();
      service = await startService(settings);
      await god().rest.post(approvePath(before), { action: 'reject' });
      await paused(god(), 'After');
      await cardOf(page, 'After').waitFor();
      await cardOf(page, 'Before').waitFor({ state: 'detached' });
      await button(page, 'Approve').click();
      await cardOf(page, 'After').getByText('next: reader').waitFor();
      expect(await page.getByRole('article').count()).to.equal(1);
    } finally {
      await service.stop();
    }
    await untilTrue(() => service.faults.length === 0);
  });
});
