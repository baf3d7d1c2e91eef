import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { offlineModel } from '../../src/models/offline.js';
import { nodeSystem } from '../../src/system/system.js';
import { bodyOf } from '../../src/console/pages/blueprint/draft.js';
import { STARTER } from '../../src/console/pages/blueprint/starter.js';
import { startChild } from '../support/child.js';
import { describeInBrowser } from '../support/console-browser.js';
import { freePort } from '../support/free-port.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

describeInBrowser('The console during failures', (browser) => {
  let service: RunningService;
  let ann: CouncilClient;
  let keys: Readonly<Record<'ann' | 'ben', string>>;

  before(async () => {
    service = await startService();
    const open = new CouncilClient({ url: service.url });
    const { key } = await open.keys.add({ name: 'ann', scopes: ['admin', 'read', 'run', 'approve', 'author'] });
    ann = new CouncilClient({ url: service.url, key });
    const { key: bens } = await ann.keys.add({ name: 'ben', scopes: ['read', 'author'] });
    keys = { ann: key, ben: bens };
  });
  after(() => service.stop());

  const urlOf = (path: string): string => `${service.url}/console/${path}`;

  async function openAs(name: 'ann' | 'ben', path: string): Promise<Page> {
    const page = await browser.open(urlOf('nothing'), { expectsRefusals: true });
    await page.context().request.post(`${service.url}/api/session`, { data: { key: keys[name] } });
    await page.goto(urlOf(path));
    return page;
  }

  async function signIn(page: Page, name: 'ann' | 'ben'): Promise<void> {
    await page.getByLabel('Key', { exact: true }).fill(keys[name]);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  async function changedBlueprint(page: Page, name: string): Promise<void> {
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByText('unsaved changes').waitFor();
  }

  soakIt('shows “Page not found” for an unknown path, and the list for a run path without an id', async () => {
    const page = await openAs('ann', 'nowhere/at/all');
    await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
    await page.getByRole('link', { name: 'Show the runs' }).click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await page.goto(urlOf('runs'));
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
  });

  soakIt('opens every page while the service does not answer', async () => {
    const page = await openAs('ann', '');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await page.context().setOffline(true);
    for (const place of ['Documents', 'Inbox']) {
      await page.getByRole('link', { name: place }).click();
      await page.getByRole('heading', { level: 1, name: place }).waitFor();
    }
    await page.context().setOffline(false);
    await page.goto(urlOf('blueprints/gone'));
    await page.getByRole('link', { name: 'Show the councils' }).click();
    await page.getByRole('heading', { level: 1, name: 'Councils' }).waitFor();
  });

  soakIt(
    'says of a page that cannot load that the service is away, and loads it when the service is back',
    async () => {
      const dir = tempDir();
      const options = { dataDir: dir.path, port: await freePort(), eventStore: null };
      let short = await startService(options);
      try {
        const page = await browser.open(`${short.url}/console/`, { expectsRefusals: true });
        await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
        await short.stop();
        await page.getByRole('link', { name: 'Models' }).click();
        await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
        await page.getByRole('status').getByText('The service does not answer').waitFor();
        // Without waiting: the note of a failed module would stand here.
        expect(await page.getByRole('alert').count()).to.equal(0);
        short = await startService(options);
        await page.getByRole('heading', { level: 2 }).first().waitFor();
        await page.getByText('does not answer').waitFor({ state: 'detached' });
      } finally {
        await short.stop();
        dir.remove();
      }
    },
  );

  it('reloads a page that cannot load because the service came back with other modules', async () => {
    const dir = tempDir();
    const options = { dataDir: dir.path, port: await freePort(), eventStore: null };
    let short = await startService(options);
    try {
      const page = await browser.open(`${short.url}/console/`, { expectsRefusals: true });
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
      // The modules of the old version are gone, until the page of the new one opens. Those that the page loads in advance
      // wait for the stop: if they failed before it, the page would reload while the service stops.
      let isGone = true;
      let onStopped = (): void => undefined;
      const stopped = new Promise<void>((resolve) => (onStopped = resolve));
      await page.route('**/assets/**/*.js', async (asked) => {
        await stopped;
        await (isGone ? asked.fulfill({ status: 404 }) : asked.continue());
      });
      page.on('request', (asked) => (isGone = isGone && !asked.isNavigationRequest()));
      await short.stop();
      onStopped();
      await page.getByRole('link', { name: 'Models' }).click();
      await page.getByRole('status').getByText('The service does not answer').waitFor();
      const reloaded = page.waitForEvent('load');
      short = await startService(options);
      await reloaded;
      await page.getByRole('heading', { level: 2 }).first().waitFor();
    } finally {
      await short.stop();
      dir.remove();
    }
  });

  soakIt('shows in an open dialog that the service does not answer', async () => {
    const short = await startService();
    try {
      await new CouncilClient({ url: short.url }).runs.start({ topic: 'The sea' });
      const page = await browser.open(`${short.url}/console/`, { expectsRefusals: true });
      await page.getByRole('button', { name: 'Start a run' }).click();
      await page.getByLabel('Topic').fill('What the sea keeps');
      await short.stop();
      await page.getByRole('dialog').getByRole('status').getByText('The service does not answer').waitFor();
      expect(await page.getByLabel('Topic').inputValue()).to.equal('What the sea keeps');
    } finally {
      await short.stop();
    }
  });

  soakIt('ignores invalid filters in the URL', async () => {
    await (await ann.runs.start({ topic: '## The **sea**' })).result();
    const page = await openAs('ann', '?status=no&sort=no&min_score=99&max_score=x&from=2026-13-45&to=soon');
    // The words of a topic, without Markdown signs.
    await page.getByRole('link', { name: 'The sea', exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).to.equal(0);
  });

  soakIt('keeps unsaved changes when a session ends, for the same user only', async () => {
    const { id } = await ann.blueprints.create(bodyOf(STARTER));
    const page = await openAs('ann', `blueprints/${id}`);
    await changedBlueprint(page, 'Not saved yet');
    await endSession(page.context(), service.url);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    expect(await page.getByRole('main').count()).to.equal(1);
    await page.getByText('keeps the unsaved changes of ann').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).isVisible()).to.equal(false);
    await signIn(page, 'ann');
    await page.getByText('unsaved changes', { exact: true }).waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Not saved yet');
    await endSession(page.context(), service.url);
    await signIn(page, 'ben');
    await page.getByText('ben').waitFor();
    await page.getByRole('heading', { level: 1, name: STARTER.name }).waitFor();
  });

  soakIt('asks before a tab with unsaved changes closes, but not after saving', async () => {
    const { id } = await ann.blueprints.create(bodyOf(STARTER));
    const page = await openAs('ann', `blueprints/${id}`);
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.dismiss();
    });
    await changedBlueprint(page, 'Nearly lost');
    await page.close({ runBeforeUnload: true });
    await untilTrue(() => asked.length === 1);
    expect([asked, page.isClosed()]).to.deep.equal([['beforeunload'], false]);
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2').waitFor();
    const closed = page.waitForEvent('close');
    await page.close({ runBeforeUnload: true });
    await closed;
    expect(asked).to.have.lengthOf(1);
  });

  it("shows a browser notification for a new pause, even if the browser's clock is an hour ahead", async () => {
    const approvals = { deadline: { after_ms: 1_800_000, then: 'reject' as const } };
    const blueprint = await ann.blueprints.create({ name: 'One', nodes: [{ id: 'author' }], approvals });
    const page = await openAs('ann', 'inbox');
    await page.clock.install({ time: Date.now() + 3_600_000 });
    await page.context().grantPermissions(['notifications'], { origin: service.url });
    await page.addInitScript(NOTED);
    await page.reload();
    await page.getByLabel('Notify me').check();
    await ann.runs.start({ topic: 'A late question', blueprint, godMode: true });
    const notices = (): Promise<unknown> => page.evaluate('globalThis.notices');
    await page.getByRole('article', { name: 'A late question' }).waitFor();
    expect(await notices()).to.deep.equal([['A run waits for your decision', 'A late question', 'granted']]);
    await page.getByText(/^in (29|30) min.*, then the run is rejected/).waitFor();
  });

  it('continues after the service was killed and restarted, and shows no event twice', async () => {
    const dir = tempDir();
    const port = await freePort();
    // The model does not answer the first call before the kill, even on a slow machine.
    const env = { ...process.env, PORT: String(port), DATA_DIR: dir.path, OFFLINE_LATENCY_MS: '60000' };
    const first = startChild(process.execPath, [MAIN], env);
    let next: RunningService | null = null;
    try {
      await first.waitFor((lines) => lines.some((line) => line.startsWith('listening on')));
      const url = `http://127.0.0.1:${port}`;
      const run = await new CouncilClient({ url }).runs.start({ topic: 'The long night' });
      const page = await browser.open(`${url}/console/runs/${run.id}?tab=events`, { expectsRefusals: true });
      await page.getByRole('listitem').getByText('Master started').first().waitFor();
      await first.kill();
      await page.getByText('The service does not answer').first().waitFor();
      const model = offlineModel({ latencyMs: 100, system: nodeSystem() });
      next = await startService({ dataDir: dir.path, port, eventStore: null, model });
      await page.getByText('completed', { exact: true }).waitFor();
      await page.getByText('does not answer').waitFor({ state: 'detached' });
      const count = (await new CouncilClient({ url }).run(run.id).verify()).events;
      await page.getByText(`${count} events checked in this browser`).waitFor();
      const rows = page.getByRole('list', { name: 'Events' }).getByRole('listitem');
      const numbers = await Promise.all((await rows.all()).map((row) => row.getAttribute('aria-posinset')));
      expect(new Set(numbers).size).to.equal(numbers.length);
      await page.getByText('lost').first().waitFor();
    } finally {
      await first.kill();
      await next?.stop();
      dir.remove();
    }
  });
});

/** Ends the session without the knowledge of the page. */
async function endSession(context: BrowserContext, url: string): Promise<void> {
  await context.request.delete(`${url}/api/session`, { headers: { Origin: url } });
}

/**
 * Records the texts of notifications. Pretends that the page has no focus, because a page in a test browser always
 * has it. Takes the permission from the answer to a request, because a headless browser reports it nowhere else.
 */
const NOTED = `
  globalThis.notices = [];
  document.hasFocus = () => false;
  globalThis.Notification = class extends Notification {
    static permission = Notification.permission;
    static async requestPermission() {
      return (this.permission = await super.requestPermission());
    }
    constructor(title, options) {
      super(title, options);
      globalThis.notices.push([title, options.body, Notification.permission]);
    }
  };
`;
