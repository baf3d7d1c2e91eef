import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { CHROMIUM, NO_CHROMIUM } from '../support/chromium.js';
import type { CuttingProxy } from '../support/cutting-proxy.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import { instantModel } from '../support/instant-model.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { pdfWith } from '../support/upload-client.js';
import { seededRandom } from '../support/seeded-random.js';
import { launchBrowser } from '../support/console-browser.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
/** The most bytes of an answer before a cut; the stream of a run here is about five times as long. */
const MAX_PIECE_BYTES = 3_000;

const PAGE = `<!doctype html><title>A page of another origin</title>
<script type="module">
  const { CouncilClient } = await import('/client/client.js');
  const { hostSystem } = await import('/client/system.js');
  const system = { ...hostSystem(), random: () => 0 };
  const clientOf = (url, key) => new CouncilClient({ url, key, retry: { callMs: 0 } });
  const told = ({ name, status, retryAfter, detail }) => ({ name, status, retryAfter, detail });
  /** The first that is told over the socket of a run, by the page's cookie, from where it waits. */
  const started = async (blueprint) => {
    let approve;
    const isOpen = new Promise((resolve) => (approve = resolve));
    const webSocket = class extends WebSocket {
      constructor(url) {
        super(url);
        approve();
      }
    };
    const run = await new CouncilClient({ webSocket }).runs.start({ topic: 'Trees', blueprint, godMode: true });
    const first = run.tokens()[Symbol.asyncIterator]().next();
    await isOpen;
    await (await run.pause()).approve();
    const { value } = await first;
    await run.cancel();
    return value;
  };
  globalThis.page = {
    /** A run in God Mode, every pause of it approved, followed over a line that breaks. */
    async guided({ url, proxy, key, blueprint }) {
      const run = await clientOf(url, key).runs.start({ topic: 'The sea', blueprint, godMode: true });
      const through = new CouncilClient({ url: proxy, key, system }).run(run.id);
      const events = [];
      for await (const event of through.events()) {
        events.push(event);
        if (event.type === 'RunPaused') await (await run.pause())?.approve({ comment: 'From a page' });
      }
      return { id: run.id, events, result: await run.result() };
    },
    async listed({ url, key }) {
      const pages = [];
      for await (const page of clientOf(url, key).runs.list({ limit: 1 }).pages()) pages.push(page.length);
      return pages;
    },
    async etag({ url, key, blueprint }) {
      const { blueprints } = clientOf(url, key);
      const { etag } = await blueprints.get(blueprint);
      return { etag, changed: await blueprints.update(blueprint, { name: 'New' }, { ifMatch: etag }) };
    },
    async uploaded({ url, key, bytes }) {
      const sent = [];
      const { documents } = clientOf(url, key);
      const file = new File([new Uint8Array(bytes)], 'trees.pdf');
      const onProgress = (progress) => sent.push(progress);
      const message = await documents.upload(file, { onProgress }).then(({ message }) => message, told);
      return { sent, message };
    },
    async refused({ url, key, times }) {
      const errors = [];
      for (let time = 0; time < times; time += 1) errors.push(told(await clientOf(url, key).session.get().catch((e) => e)));
      return errors;
    },
    /** All by a cookie: no key is kept. */
    async signedIn({ key, blueprint }) {
      const council = new CouncilClient({ retry: { callMs: 0 } });
      const before = told(await council.session.get().catch((e) => e));
      const { actor } = await council.session.signIn(key);
      const run = await council.runs.start({ topic: 'Trees' });
      let last = null;
      for await (const { type } of run.events()) last = type;
      const live = await started(blueprint);
      await council.session.signOut();
      return { before, actor, last, live, after: told(await run.status().catch((e) => e)) };
    },
    async aborted({ url, key, id }) {
      const abort = new AbortController();
      const reading = clientOf(url, key).run(id).events({ from: 1000, signal: abort.signal })[Symbol.asyncIterator]();
      setTimeout(() => abort.abort(), 10);
      return await reading.next();
    },
  };
  document.title = 'ready';
</script>`;

describe(`The client in Chromium (SEED=${SEED})`, () => {
  if (CHROMIUM === null) {
    it(NO_CHROMIUM);
    return;
  }
  const executablePath = CHROMIUM;

  const random = seededRandom(SEED);
  let service: RunningService;
  let proxy: CuttingProxy;
  let browser: Browser;
  let page: Page;
  /** Each of a person of its own. */
  const tabs: Page[] = [];
  let key: string;
  let council: CouncilClient;
  const servers: Server[] = [];

  before(async () => {
    const origin = await openSite();
    service = await startService({ model: instantModel(), corsOrigins: [origin] });
    proxy = await openCuttingProxy(service.url, () => 1 + Math.floor(random() * MAX_PIECE_BYTES));
    const keys = await new CouncilClient({ url: service.url }).keys.add({
      name: 'ann',
      scopes: ['admin', 'read', 'run', 'approve', 'author', 'documents'],
    });
    key = keys.key;
    council = new CouncilClient({ url: service.url, key });
    browser = await launchBrowser(executablePath);
    page = await opened(origin);
  });
  after(async () => {
    await Promise.all(tabs.map((tab) => tab.close()));
    await browser.close();
    await proxy.close();
    await service.stop();
    for (const server of servers) server.close();
  });

  /** The site's origin. */
  async function openSite(): Promise<string> {
    const server = createServer(({ url = '/' }, response) => {
      const script = scriptAt(url);
      response.setHeader('Content-Type', script === null ? 'text/html' : 'text/javascript').end(script ?? PAGE);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** The module at a path, or null if the path names none. */
  function scriptAt(path: string): string | null {
    const [, name] = /^\/client\/([\w-]+\.js)$/.exec(path) ?? [];
    return name === undefined ? null : readFileSync(new URL(`../../src/client/${name}`, import.meta.url), 'utf8');
  }

  async function opened(address: string, tab?: Page): Promise<Page> {
    const shown = tab ?? (await browser.newPage());
    tabs.push(shown);
    shown.setDefaultTimeout(0);
    await shown.goto(address);
    await shown.waitForFunction("document.title === 'ready'");
    return shown;
  }

  const asked = async <T>(tab: Page, name: string, words: object = {}): Promise<T> =>
    await tab.evaluate<T>(`page.${name}(${JSON.stringify({ url: service.url, key, ...words })})`);

  it('starts a run, approves its pauses, and follows it to the end over broken connections', async () => {
    const { id: blueprint } = await council.blueprints.create({
      name: 'Pair',
      nodes: [{ id: 'write' }, { id: 'polish' }],
      edges: [{ source: 'write', target: 'polish' }],
    });
    interface Guided {
      readonly id: string;
      readonly events: readonly unknown[];
      readonly result: object;
    }
    const { id, events, result } = await asked<Guided>(page, 'guided', { proxy: proxy.url, blueprint });
    expect(result).to.include({ run_id: id, status: 'completed' });
    const recorded: unknown[] = [];
    for await (const event of council.run(id).events()) recorded.push(event);
    expect(events).to.deep.equal(recorded);
    expect(JSON.stringify(recorded)).to.include('From a page');
    expect(proxy.cuts).to.be.greaterThan(1);
  });

  it('can read the headers Link, ETag and Retry-After', async () => {
    await council.runs.start({ topic: 'Trees' });
    await council.runs.start({ topic: 'Trees' });
    expect((await asked<readonly number[]>(page, 'listed')).length).to.be.greaterThan(1);
    const { id: blueprint } = await council.blueprints.create({ name: 'Old', nodes: [] });
    const tagged = await asked<{ etag: string; changed: object }>(page, 'etag', { blueprint });
    expect(tagged.etag).to.match(/^"/);
    expect(tagged.changed).to.include({ name: 'New', version: 2 });
    const refused = await asked<readonly object[]>(page, 'refused', { key: 'council_wrong', times: 15 });
    expect(refused[0]).to.include({ name: 'UnauthorizedError', status: 401 });
    expect(refused.at(-1))
      .to.include({ name: 'TooManyRequestsError', status: 429 })
      .and.have.property('retryAfter')
      .above(0);
  });

  it('reports the progress and the result of an upload', async () => {
    interface Uploaded {
      readonly sent: readonly { readonly sent: number; readonly total: number }[];
      readonly message: string | object;
    }
    const bytes = [...pdfWith(['Ash'])];
    const { sent, message } = await asked<Uploaded>(page, 'uploaded', { bytes });
    expect(message).to.equal('1 chunk of trees.pdf ingested');
    expect(sent.at(-1)?.sent).to.equal(sent.at(-1)?.total).and.be.greaterThan(bytes.length);
    const refused = await asked<Uploaded>(page, 'uploaded', { bytes: [...Buffer.from('A letter')] });
    expect(refused.message).to.include({ name: 'InvalidError', status: 422 });
  });

  it('stops reading when its signal aborts', async () => {
    const { id: blueprint } = await council.blueprints.create({ name: 'One', nodes: [{ id: 'write' }] });
    const { id } = await council.runs.start({ topic: 'Trees', blueprint, godMode: true });
    expect(await asked(page, 'aborted', { id })).to.deep.equal({ done: true, value: undefined });
    await council.run(id).cancel();
  });

  it('uses a cookie on pages of the service itself until it signs out', async () => {
    // Served under the service's own origin: Chromium does not let a page without an address call the loopback.
    const tab = await browser.newPage({ permissions: ['local-network-access'] });
    await tab.route(`${service.url}/pages/**`, (route) => route.fulfill({ contentType: 'text/html', body: PAGE }));
    await tab.route(/\.js$/, async (route) => {
      const { pathname } = new URL(route.request().url());
      await route.fulfill({ contentType: 'text/javascript', body: scriptAt(pathname) ?? '' });
    });
    await opened(`${service.url}/pages/`, tab);
    const { id: blueprint } = await council.blueprints.create({
      name: 'Two',
      nodes: [{ id: 'write' }, { id: 'end' }],
      edges: [{ source: 'write', target: 'end' }],
    });
    const signedIn = await asked<object>(tab, 'signedIn', { blueprint });
    expect(signedIn).to.deep.include({ actor: 'ann', last: 'RunCompleted' });
    expect(signedIn).to.have.property('live').that.includes({ event: 'node_start', node: 'write' });
    expect(signedIn).to.have.nested.property('before.status', 401);
    expect(signedIn).to.have.nested.property('after.status', 401);
  });

  it('is admitted only from listed origins', async () => {
    const stranger = await opened(await openSite());
    const [error] = await asked<readonly object[]>(stranger, 'refused', { times: 1 });
    expect(error).to.include({ name: 'UnreachableError', status: null });
  });
});
