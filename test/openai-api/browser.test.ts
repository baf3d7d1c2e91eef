import { expect } from 'chai';
import { build } from 'esbuild';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { CHROMIUM, NO_CHROMIUM } from '../support/chromium.js';
import { launchBrowser } from '../support/console-browser.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

/** The page of an application: the official client, as its documentation shows for browsers. */
const SCRIPT = `
  import OpenAI from 'openai';
  const clientOf = ({ url, key }) => new OpenAI({ baseURL: url + '/v1', apiKey: key, dangerouslyAllowBrowser: true });
  const chatOf = (text) => ({ model: 'council', messages: [{ role: 'user', content: text }] });
  globalThis.page = {
    async completed(at) {
      const { data, response } = await clientOf(at).chat.completions.create(chatOf('Trees')).withResponse();
      return { text: data.choices[0].message.content, runId: response.headers.get('Council-Run-Id') };
    },
    async streamed(at) {
      const client = clientOf(at);
      const chat = await client.chat.completions.stream(chatOf('Trees')).finalContent();
      const response = await client.responses.stream({ model: 'council', input: 'Trees' }).finalResponse();
      return [chat, response.output_text];
    },
    async refused(at) {
      const error = await clientOf(at).chat.completions.create({ ...chatOf('Trees'), n: 2 }).catch((reason) => reason);
      return { name: error.constructor.name, status: error.status ?? null, param: error.param ?? null };
    },
  };
  document.title = 'ready';
`;

describe('The official OpenAI client in Chromium', () => {
  if (CHROMIUM === null) {
    it(NO_CHROMIUM);
    return;
  }
  const executablePath = CHROMIUM;
  let service: RunningService;
  let browser: Browser;
  let script: string;
  let key: string;
  /** One that the service lists, and one that it does not. */
  let [listed, stranger] = [createServer(), createServer()];

  before(async () => {
    script = await bundled(SCRIPT);
    browser = await launchBrowser(executablePath);
    [listed, stranger] = [await openSite(), await openSite()];
  });
  after(async () => {
    await browser.close();
    for (const site of [listed, stranger]) site.close();
  });
  beforeEach(async () => {
    const corsOrigins = [originOf(listed)];
    service = await startService({ model: scriptedModel(councilScript([8, 8, 8])), corsOrigins });
    const admin = restWith(service.url, await addFirstKey(service.url));
    key = await addKey(admin, { name: 'page', scopes: ['run'] });
  });
  afterEach(() => service.stop());

  /** A web server with the page. */
  async function openSite(): Promise<Server> {
    const site = createServer(({ url }, response) => {
      if (url === '/page.js') response.setHeader('Content-Type', 'text/javascript').end(script);
      else response.setHeader('Content-Type', 'text/html').end('<script type="module" src="/page.js"></script>');
    });
    site.listen(0, '127.0.0.1');
    await once(site, 'listening');
    return site;
  }

  /** Calls a function of the page, which a site serves. */
  async function asked(name: string, site: Server): Promise<unknown> {
    const page: Page = await browser.newPage();
    try {
      await page.goto(originOf(site));
      await page.waitForFunction("document.title === 'ready'");
      return await page.evaluate(`page.${name}(${JSON.stringify({ url: service.url, key })})`);
    } finally {
      await page.close();
    }
  }

  it('completes a chat, and reads the id of its run', async () => {
    const { text, runId } = (await asked('completed', listed)) as { text: string; runId: string };
    expect(text).to.equal('Draft 2 by Writer');
    expect(runId).to.match(/^[0-9a-f-]{36}$/);
  });

  it('streams a chat and a response', async () => {
    expect(await asked('streamed', listed)).to.deep.equal(['Draft 2 by Writer', 'Draft 4 by Writer']);
  });

  it('gets errors with their fields', async () => {
    const error = { name: 'BadRequestError', status: 400, param: 'n' };
    expect(await asked('refused', listed)).to.deep.equal(error);
  });

  it('reaches nothing from a site that is not listed', async () => {
    const error = { name: 'APIConnectionError', status: null, param: null };
    expect(await asked('refused', stranger)).to.deep.equal(error);
  });
});

async function bundled(contents: string): Promise<string> {
  const resolveDir = fileURLToPath(new URL('../../..', import.meta.url));
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    keepNames: true,
  });
  return outputFiles[0]?.text ?? '';
}

function originOf(site: Server): string {
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
}
