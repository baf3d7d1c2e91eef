import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import type { GateDecidedData } from '../../src/generated/schemas.js';
import { present } from '../../src/system/element.js';
import { startChild } from '../support/child.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { freePort } from '../support/free-port.js';
import { approvePath, pausedBefore } from '../support/god-run.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { factsOf, recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

const PAIR = {
  name: 'Pair',
  nodes: [
    { id: 'poet', label: 'The poet', systemPrompt: 'Write four lines.' },
    { id: 'reader', label: 'The reader', systemPrompt: 'Read them aloud.', tools: { webSearch: true } },
  ],
  edges: [{ source: 'poet', target: 'reader' }],
};

const button = (at: Page | Locator, name: string): Locator => at.getByRole('button', { name, exact: true });
const cardOf = (page: Page, topic: string): Locator => page.getByRole('article', { name: topic });
const messages = (page: Page): Locator => page.locator('.toasts');

/** Ids of the runs that a test has started. */
const started: string[] = [];

/** Starts a run of a new council in God Mode. Resolves with its id at its first pause. */
async function paused(rest: RestClient, service: RunningService, topic: string): Promise<string> {
  const { id } = rest.read(await rest.post('/api/councils/', PAIR), 201, 'blueprint.json');
  const answer = await rest.post(`/api/councils/${id}/run`, { input_topic: topic, god_mode: true });
  const { run_id: runId } = rest.read(answer, 202, 'run-start.json');
  started.push(runId);
  await pausedBefore(service.context, runId, 'poet');
  return runId;
}

/** A browser in a test never hides its pages itself. */
async function hide(page: Page): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true })`);
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
}

describeInBrowser('A decision in the console', (browser) => {
  const model = scriptedModel(() => ({ text: 'A draft of the sea' }));
  let service: RunningService;
  let rest: RestClient;
  const keys = { ann: '', ben: '' };

  before(async () => {
    service = await startService({ model });
    rest = restWith(service.url, await addFirstKey(service.url));
    for (const name of ['ann', 'ben'] as const) keys[name] = await addKey(rest, { name, scopes: ['read', 'approve'] });
  });
  after(() => service.stop());
  afterEach(async () => {
    for (const runId of started.splice(0)) await rest.post(`/api/councils/run/${runId}/cancel`);
  });

  const openAs = async (
    who: keyof typeof keys,
    path: string,
    before?: (page: Page) => Promise<void>,
  ): Promise<Page> => {
    const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
    await page.context().request.post(`${service.url}/api/session`, { data: { key: keys[who] } });
    await before?.(page);
    await page.goto(`${service.url}/console/${path}`);
    return page;
  };
  const decisionsOn = async (runId: string): Promise<readonly GateDecidedData[]> =>
    factsOf(await recordOf(service.context.log, runId), 'GateDecided');
  /** The requests that decide a pause. */
  const requestsOf = (page: Page): readonly string[] => {
    const sent: string[] = [];
    page.on('request', (request) => request.url().endsWith('/approve') && sent.push(request.postData() ?? ''));
    return sent;
  };

  it('names the run and what starts, and is undone by its button or by a key before it is sent', async () => {
    const runId = await paused(rest, service, 'The library');
    const page = await openAs('ann', 'inbox');
    const sent = requestsOf(page);
    await cardOf(page, 'The library').getByText('Next: The poet').waitFor();
    await page.getByLabel('Comment').fill('Fine');
    await button(page, 'Approve').click();
    await messages(page)
      .getByText(/Approved “The library”: The poet starts in [1-5] s/)
      .waitFor();
    await page.getByText('Nothing else waits').waitFor();
    await button(messages(page), 'Undo').click();
    await cardOf(page, 'The library').getByText('Next: The poet').waitFor();
    expect(await page.getByLabel('Comment').inputValue()).to.equal('Fine');
    await cardOf(page, 'The library').focus();
    await page.keyboard.press('a');
    await messages(page).getByText('Approved “The library”').waitFor();
    await page.keyboard.press('u');
    await cardOf(page, 'The library').waitFor();
    expect(await messages(page).getByText('Approved').count()).to.equal(0);
    expect([sent, await decisionsOn(runId)]).to.deep.equal([[], []]);
  });

  it('is sent once after five seconds, and until then can be undone', async () => {
    const runId = await paused(rest, service, 'In time');
    const page = await openAs('ann', 'inbox', (before) => before.clock.install());
    const sent = requestsOf(page);
    await cardOf(page, 'In time').getByText('Next: The poet').waitFor();
    await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 1_000);
    await button(page, 'Approve').click();
    await page.clock.runFor(4_990);
    await button(messages(page), 'Undo').click();
    await page.clock.runFor(60_000);
    await cardOf(page, 'In time').waitFor();
    expect([sent, await decisionsOn(runId)]).to.deep.equal([[], []]);
    await button(page, 'Reject').click();
    await page.clock.runFor(4_999);
    expect(sent).to.deep.equal([]);
    await page.clock.runFor(1);
    await untilTrue(async () => (await decisionsOn(runId)).length === 1);
    // The answer may reach the page later than the decision reaches the log.
    await untilTrue(async () => {
      await page.clock.runFor(60_000);
      return (await messages(page).getByText('Rejected').count()) === 0;
    });
    expect([sent.length, (await decisionsOn(runId)).map(({ action }) => action)]).to.deep.equal([1, ['reject']]);
  });

  it('says which draft was on the screen, in the inbox and on the page of the run', async () => {
    const runId = await paused(rest, service, 'Seen');
    const inbox = await openAs('ann', 'inbox');
    const card = cardOf(inbox, 'Seen');
    await card.getByText('No draft yet').waitFor();
    await button(card, 'Approve').click();
    await inbox.close();
    await pausedBefore(service.context, runId, 'reader');
    const page = await openAs('ann', `runs/${runId}`);
    await page.getByRole('region', { name: 'Draft', exact: true }).getByText('A draft of the sea').waitFor();
    const shownAt = Date.now();
    // The page stays open for a while before the decision.
    await page.waitForTimeout(1_100);
    await button(page, 'Approve').click();
    await page.close();
    await untilTrue(async () => (await decisionsOn(runId)).length === 2);
    const decided = await decisionsOn(runId);
    expect(decided.map(({ review }) => review?.draftSha256)).to.deep.equal([
      null,
      createHash('sha256').update('A draft of the sea').digest('hex'),
    ]);
    expect(Math.abs(Date.parse(decided[1]?.review?.openedAt ?? '') - shownAt)).to.be.below(1_000);
  });

  for (const { how, leave } of [
    { how: 'the page is closed', leave: (page: Page) => page.close() },
    { how: 'the browser goes elsewhere', leave: async (page: Page) => void (await page.goto('about:blank')) },
    { how: 'the page is hidden', leave: hide },
    { how: 'the user signs out', leave: (page: Page) => button(page, 'Sign out').click() },
  ]) {
    it(`is sent at once when ${how}`, async () => {
      const runId = await paused(rest, service, 'Left');
      const page = await openAs('ann', 'inbox', (before) => before.clock.install());
      await cardOf(page, 'Left').getByText('Next: The poet').waitFor();
      await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 1_000);
      await button(page, 'Approve').click();
      await messages(page).getByText('Approved “Left”').waitFor();
      await leave(page);
      await untilTrue(async () => (await decisionsOn(runId)).length === 1);
      expect((await decisionsOn(runId))[0]).to.include({ action: 'approve', actor: 'ann' });
    });
  }

  soakIt('can be undone on another page of the console', async () => {
    const runId = await paused(rest, service, 'Elsewhere');
    const page = await openAs('ann', `runs/${runId}`);
    await page.getByRole('heading', { name: 'before The poet' }).waitFor();
    await page.getByText('Next: The poet').waitFor();
    await button(page, 'Reject').click();
    await messages(page)
      .getByText(/Rejected “Elsewhere”: the run ends in \d s/)
      .waitFor();
    expect(await button(page, 'Approve').count()).to.equal(0);
    await page.getByRole('link', { name: 'Documents' }).click();
    await page.getByRole('heading', { level: 1, name: 'Documents' }).waitFor();
    await button(messages(page), 'Undo').click();
    await page.getByRole('link', { name: /^Inbox/ }).click();
    await button(cardOf(page, 'Elsewhere'), 'Approve').waitFor();
    expect(await decisionsOn(runId)).to.deep.equal([]);
  });

  soakIt('is named once on the page of its run, with one button that undoes it', async () => {
    const runId = await paused(rest, service, 'Said once');
    const page = await openAs('ann', `runs/${runId}`);
    await page.getByText('Next: The poet').waitFor();
    await button(page, 'Approve').click();
    await page.getByText('Your decision is not recorded yet.').waitFor();
    expect(await page.getByText('Approved “Said once”').count()).to.equal(1);
    await button(page, 'Undo').click();
    await button(page, 'Approve').waitFor();
    expect(await decisionsOn(runId)).to.deep.equal([]);
  });

  soakIt(
    'is sent at once if its text is longer than 60 KiB, or if the user has switched the undo window off',
    async () => {
      const runId = await paused(rest, service, 'At once');
      const page = await openAs('ann', 'inbox');
      await cardOf(page, 'At once').getByText('Next: The poet').waitFor();
      await button(page, 'Edit').click();
      await page.getByRole('dialog').getByLabel('Draft', { exact: true }).fill('sea '.repeat(16_000));
      await button(page, 'Send edit').click();
      expect(await button(messages(page), 'Undo').count()).to.equal(0);
      await untilTrue(async () => (await decisionsOn(runId)).length === 1);
      await cardOf(page, 'At once').getByText('Next: The reader').waitFor();
      await page.getByRole('button', { name: 'Shortcuts' }).click();
      await page.getByLabel('Wait 5 seconds before a decision is sent').uncheck();
      await page.keyboard.press('Escape');
      await page.clock.install();
      await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 1_000);
      await button(page, 'Approve').click();
      await messages(page).getByText('Approved “At once”: The reader starts.', { exact: true }).waitFor();
      expect((await decisionsOn(runId)).map(({ action }) => action)).to.deep.equal(['modify', 'approve']);
    },
  );

  soakIt(
    'is not sent if another approver decides first: the card and a message name the run and that approver',
    async () => {
      const runId = await paused(rest, service, 'Of both');
      const page = await openAs('ann', 'inbox');
      const sent = requestsOf(page);
      await cardOf(page, 'Of both').getByText('Next: The poet').waitFor();
      await button(page, 'Approve').click();
      await messages(page).getByText('Approved “Of both”').waitFor();
      const bens = restWith(service.url, keys.ben);
      expect((await bens.post(approvePath(runId), { action: 'reject' })).status).to.equal(200);
      const lost = 'Too late: ben rejected “Of both” just now. Your approval was not recorded.';
      await messages(page).getByText(lost).waitFor();
      await cardOf(page, 'Of both').getByText(lost).waitFor();
      expect(await button(page, 'Approve').count()).to.equal(0);
      expect(await faultsIn(page)).to.deep.equal([]);
      await button(cardOf(page, 'Of both'), 'Dismiss').click();
      await page.getByText('Nothing waits for you').waitFor();
      expect([sent, (await decisionsOn(runId)).length]).to.deep.equal([[], 1]);
    },
  );

  soakIt('leaves no trace once it is undone: the page says who decides the run then', async () => {
    const runId = await paused(rest, service, 'Undone');
    const page = await openAs('ann', 'inbox');
    await cardOf(page, 'Undone').getByText('Next: The poet').waitFor();
    await button(page, 'Approve').click();
    await button(messages(page), 'Undo').click();
    await cardOf(page, 'Undone').getByText('Next: The poet').waitFor();
    const bens = restWith(service.url, keys.ben);
    expect((await bens.post(approvePath(runId), { action: 'reject' })).status).to.equal(200);
    await messages(page).getByText('ben rejected “Undone” just now.').waitFor();
  });

  soakIt('shows what is decided and the draft in the first screen of a phone', async () => {
    const runId = await paused(rest, service, 'On a phone');
    await rest.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'reader');
    for (const path of [`inbox?run=${runId}`, `runs/${runId}`]) {
      const page = await openAs('ann', path);
      await page.setViewportSize({ width: 360, height: 740 });
      await page.reload();
      const draft = page.locator('.prose').getByText('A draft of the sea');
      await draft.waitFor();
      await page.getByRole('heading', { name: 'Next: The reader' }).waitFor();
      const foot = present(await button(page, 'Approve').boundingBox(), 'buttons');
      const text = present(await draft.boundingBox(), 'draft');
      expect(text.y + text.height, path).to.be.below(foot.y);
      const next = page.getByRole('region', { name: 'Next step' });
      expect(await next.getByText('Prompt that is sent').isVisible()).to.equal(false);
      await next.getByText('Next: The reader').click();
      await next.getByText('Prompt that is sent').waitFor();
      expect(await faultsIn(page)).to.deep.equal([]);
    }
  });

  it('is made with the exact prompt, the model, the tools and the cost in sight', async () => {
    const runId = await paused(rest, service, 'In sight');
    await rest.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'reader');
    for (const path of ['inbox', `runs/${runId}`]) {
      const page = await openAs('ann', path);
      const next = page.getByRole('region', { name: 'Next step' });
      await next.getByText('Next: The reader').waitFor();
      for (const text of ['scripted-1', 'Writer: writes the draft', 'web search', /^at most .* tokens/, /, 1 call$/])
        await next.getByText(text).first().waitFor();
      await next.getByText('Prompt that is sent').click();
      const texts = next.locator('pre');
      await texts.nth(1).waitFor();
      // Not the inner text: a block of a long text has none until it is laid out.
      const [system, prompt] = (await texts.allTextContents()).map((text) => text.trim());
      expect(system).to.include('Read them aloud.');
      expect(prompt).to.include('A draft of the sea');
      expect(await faultsIn(page)).to.deep.equal([]);
      if (path === 'inbox') continue;
      const before = model.requests.length;
      await button(page, 'Approve').click();
      await model.called(before + 1);
      const request = model.requests.at(-1);
      expect([system, prompt]).to.deep.equal([request?.system.trim(), request?.prompt.trim()]);
    }
  });

  it('is not sent with another key, if the session ends before', async () => {
    const runId = await paused(rest, service, 'Ended');
    const page = await openAs('ann', 'inbox', (before) => before.clock.install());
    await cardOf(page, 'Ended').getByText('Next: The poet').waitFor();
    await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 1_000);
    await button(page, 'Approve').click();
    await messages(page).getByText('Approved “Ended”').waitFor();
    await page.context().request.delete(`${service.url}/api/session`, { headers: { Origin: service.url } });
    await page.clock.runFor(5_000);
    await page.clock.resume();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await messages(page).getByText('“Ended” was not approved.').waitFor();
    expect(await decisionsOn(runId)).to.deep.equal([]);
    await page.getByLabel('Key', { exact: true }).fill(keys.ben);
    await button(page, 'Sign in').click();
    await button(cardOf(page, 'Ended'), 'Approve').waitFor();
    expect(await decisionsOn(runId)).to.deep.equal([]);
  });

  soakIt('returns to its card with the reason if the service refuses it', async () => {
    const runId = await paused(rest, service, 'Refused');
    const page = await openAs('ann', 'inbox');
    await cardOf(page, 'Refused').getByText('Next: The poet').waitFor();
    await button(page, 'Edit').click();
    await page.getByRole('dialog').getByLabel('Iteration').fill('999999');
    await button(page, 'Send edit').click();
    await messages(page).getByText('“Refused” was not edited.').waitFor();
    await page.getByRole('dialog').getByLabel('Iteration').waitFor();
    expect(await page.getByRole('dialog').getByLabel('Iteration').inputValue()).to.equal('999999');
    expect(await decisionsOn(runId)).to.deep.equal([]);
  });
});

describeInBrowser('What waits, in the console', (browser) => {
  it('is decided while the service is away as soon as it is back, or else waits again with a message', async () => {
    const dir = tempDir();
    const settings = { model: scriptedModel(), dataDir: dir.path, port: await freePort() };
    let service = await startService(settings);
    try {
      const runId = await paused(restClient(service.url), service, 'Away');
      const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
      await page.clock.install();
      await page.goto(`${service.url}/console/inbox`);
      await cardOf(page, 'Away').getByText('Next: The poet').waitFor();
      await service.stop();
      await page.getByText('The service does not answer').first().waitFor();
      await button(page, 'Approve').click();
      await messages(page).getByText('Approved “Away”').waitFor();
      await page.clock.runFor(90_000);
      await messages(page).getByText('“Away” was not approved. The service did not answer.').waitFor();
      await button(cardOf(page, 'Away'), 'Approve').click();
      await page.clock.runFor(5_000);
      await messages(page).getByText('Sending').waitFor();
      service = await startService(settings);
      await untilTrue(async () => {
        await page.clock.runFor(1_000);
        return factsOf(await recordOf(service.context.log, runId), 'GateDecided').length === 1;
      });
    } finally {
      await service.stop();
      dir.remove();
    }
  });

  soakIt('is decided after the service was killed under the open inbox and started again', async () => {
    const dir = tempDir();
    const port = await freePort();
    const env = { ...process.env, PORT: String(port), DATA_DIR: dir.path };
    const first = startChild(process.execPath, [MAIN], env);
    let next: RunningService | null = null;
    try {
      await first.waitFor((lines) => lines.some((line) => line.startsWith('listening on')));
      const url = `http://127.0.0.1:${port}`;
      const rest = restClient(url);
      const { id } = rest.read(await rest.post('/api/councils/', PAIR), 201, 'blueprint.json');
      await rest.post(`/api/councils/${id}/run`, { input_topic: 'Killed', god_mode: true });
      const page = await browser.open(`${url}/console/inbox`, { expectsRefusals: true });
      await cardOf(page, 'Killed').getByText('Next: The poet').waitFor();
      await first.kill();
      await page.getByText('The service does not answer').first().waitFor();
      await cardOf(page, 'Killed').waitFor();
      expect(await page.getByText(/Nothing .*waits/).count()).to.equal(0);
      await button(page, 'Approve').click();
      next = await startService({ dataDir: dir.path, port, eventStore: null, model: scriptedModel() });
      await cardOf(page, 'Killed').getByText('Next: The reader').waitFor();
      await page.getByText('does not answer').waitFor({ state: 'detached' });
      expect(await page.getByRole('article').count()).to.equal(1);
    } finally {
      await first.kill();
      await next?.stop();
      dir.remove();
    }
  });

  soakIt('stands still while the service is away, without a pulsing mark', async () => {
    const service = await startService({ model: scriptedModel(() => 'hold') });
    try {
      restClient(service.url).read(
        await restClient(service.url).post('/api/councils/run', { input_topic: 'The sea' }),
        202,
        'run-start.json',
      );
      const page = await browser.open(`${service.url}/console/`, { expectsRefusals: true });
      await page.emulateMedia({ reducedMotion: 'no-preference' });
      const moving = (): Promise<number> => page.evaluate<number>('document.getAnimations().length');
      await page.locator('.badge', { hasText: 'running' }).first().waitFor();
      await untilTrue(async () => (await moving()) > 0);
      await service.stop();
      await page.getByText('The service does not answer').first().waitFor();
      await untilTrue(async () => (await moving()) === 0);
    } finally {
      await service.stop();
    }
  });

  soakIt('is unknown before the first answer, and the page says so', async () => {
    const service = await startService();
    try {
      const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
      let goOn = (): void => {};
      const held = new Promise<void>((resolve) => (goOn = resolve));
      await page.route(/\/api\/approvals(\?|$)/, async (route) => {
        await held;
        await route.continue();
      });
      await page.goto(`${service.url}/console/inbox`);
      await page.getByRole('status', { name: 'Loading the inbox' }).waitFor();
      expect(await page.getByText(/Nothing .*waits/).count()).to.equal(0);
      goOn();
      await page.getByText('Nothing waits').waitFor();
    } finally {
      await service.stop();
    }
  });

  soakIt('is unknown while the service is away: the page says so at its top, and times stand still', async () => {
    const dir = tempDir();
    const settings = { model: scriptedModel(), dataDir: dir.path, port: await freePort() };
    let service = await startService(settings);
    try {
      const runId = await paused(restClient(service.url), service, 'Held');
      const page = await browser.open(`${service.url}/console/nothing`, { expectsRefusals: true });
      await page.clock.install();
      await page.goto(`${service.url}/console/inbox`);
      await cardOf(page, 'Held').getByText('Next: The poet').waitFor();
      await button(page, 'Reject').click();
      await untilTrue(async () => factsOf(await recordOf(service.context.log, runId), 'GateDecided').length === 1);
      await page.getByText('Nothing waits').waitFor();
      await paused(restClient(service.url), service, 'Kept');
      await cardOf(page, 'Kept').getByText('Next: The poet').waitFor();
      await service.stop();
      const bar = page.getByText('The service does not answer').first();
      await bar.waitFor();
      expect((await bar.boundingBox())?.y).to.equal(0);
      const waited = (): Promise<string> => cardOf(page, 'Kept').locator('time').first().innerText();
      const before = await waited();
      await page.clock.fastForward(70_000);
      expect(await waited()).to.equal(before);
      service = await startService(settings);
      await page.getByText('The service does not answer').waitFor({ state: 'detached' });
      await untilTrue(async () => (await waited()) !== before);
      await button(cardOf(page, 'Kept'), 'Approve').click();
      await cardOf(page, 'Kept').getByText('Next: The reader').waitFor();
    } finally {
      await service.stop();
      dir.remove();
    }
  });
});
