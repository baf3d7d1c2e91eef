/** The console in a real browser, whose errors fail the test. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { present } from '../../src/system/element.js';
import { CHROMIUM, NO_CHROMIUM } from './chromium.js';
import { IS_SOAK, sample } from './soak.js';

export interface PageOptions {
  /** Default: 1280. */
  readonly width?: number;
  /** Default: 800. */
  readonly height?: number;
  readonly isDark?: boolean;
  /** Whether the test expects answers of 400 and above, each of which browsers write to their console. */
  readonly expectsRefusals?: boolean;
  /** Shares cookies and storage with an earlier page. Default: its own. */
  readonly context?: BrowserContext;
}

export interface ConsoleBrowser {
  /** Opens a page of the console. @param url with path, such as `${service.url}/console/` */
  open(url: string, options?: PageOptions): Promise<Page>;
}

/** A busy service returns 503 or cuts off a slow page, and the client tries again. */
const OF_A_BUSY_MACHINE = /503|ERR_INCOMPLETE_CHUNKED_ENCODING/;

export const LOOKS = [
  { name: 'on a phone in the dark', width: 360, height: 740, colorScheme: 'dark' },
  { name: 'at a desk in the light', width: 1280, height: 800, colorScheme: 'light' },
] as const;

/** A block of tests in a browser, skipped if none is installed. An error on the browser's console fails the test. */
export function describeInBrowser(title: string, tests: (browser: ConsoleBrowser) => void): void {
  describe(title, () => {
    if (CHROMIUM === null) {
      it(NO_CHROMIUM);
      return;
    }
    const executablePath = CHROMIUM;
    let browser: Browser | null = null;
    let contexts: BrowserContext[] = [];
    let faults: string[] = [];

    before(async () => {
      browser = await launchBrowser(executablePath);
    });
    afterEach(async function () {
      const [opened, found] = [contexts, faults];
      if (this.currentTest?.state === 'failed') await tellPages(opened);
      [contexts, faults] = [[], []];
      await Promise.all(opened.map((context) => context.close()));
      expect(found, 'what the browser found wrong').to.deep.equal([]);
    });
    after(() => browser?.close());

    async function open(url: string, options: PageOptions = {}): Promise<Page> {
      const { width = 1280, height = 800, isDark = false, expectsRefusals = false } = options;
      const context =
        options.context ??
        (await present(browser, 'browser').newContext({
          viewport: { width, height },
          colorScheme: isDark ? 'dark' : 'light',
          reducedMotion: 'reduce',
        }));
      if (options.context === undefined) contexts.push(context);
      const page = await context.newPage();
      page.setDefaultTimeout(0);
      page.on('pageerror', (error) => faults.push(error.stack ?? error.message));
      page.on('console', (message) => {
        const isRefusal = /^(Failed to load resource|WebSocket connection to \S+ failed)/.test(message.text());
        const isExpected = isRefusal && (expectsRefusals || OF_A_BUSY_MACHINE.test(message.text()));
        if (message.type() === 'error' && !isExpected) faults.push(message.text());
      });
      await page.goto(url);
      return page;
    }

    tests({ open });
  });
}

/** Starts Chromium without a time limit, because a machine may be slow: the runner has one. */
export function launchBrowser(executablePath: string): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'];
  return chromium.launch({ executablePath, args, timeout: 0 });
}

/** Prints what each page showed when its test failed. */
async function tellPages(contexts: readonly BrowserContext[]): Promise<void> {
  for (const page of contexts.flatMap((context) => context.pages())) {
    const text = await page.innerText('body', { timeout: 5_000 }).catch(String);
    console.error(`${page.url()}\n${text.replace(/^/gm, '  | ')}`);
  }
}

/**
 * Resolves once a page shows the data that it requested. Streams stay open, so a test cannot wait for an idle network.
 */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

/**
 * The faults of a page as shown: on a phone in the dark theme, and in a soak on a desktop in the light theme.
 *
 * @param isChecked whether axe checks its accessibility, which takes seconds: by default in a soak
 * @param looks in which it is shown
 */
export async function faultsIn(page: Page, isChecked = IS_SOAK, looks = sample(LOOKS, 1)): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { name, width, height, colorScheme } of looks) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    const faults = isChecked ? await seriousFaults(page) : [];
    if (await overflows(page)) faults.push('is wider than its window');
    found.push(...faults.map((fault) => `${name}: ${fault}`));
  }
  return found;
}

/** Read as text, not imported, because only pages run it. The minified file is half as large. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * The serious faults that axe finds on a page: rule and place. The rest of its result, a thousand times as large, stays
 * in the page.
 */
async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target + ': ' + failureSummary)),
  )`);
}

/** Whether a page is wider than its window. */
export async function overflows(page: Page): Promise<boolean> {
  return await page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');
}

/** The most bytes, as gzip, that a page loads beyond what the first page loads. */
const MOST_FOR_A_PAGE = 60 * 1024;

/** Whether a page, opened by its URL, has loaded more modules than it may: says how much. */
export async function overweight(page: Page): Promise<readonly string[]> {
  const bytes = await page.evaluate<number>(`(() => {
    const first = [...document.querySelectorAll('link[rel=modulepreload], script[src]')].map(({ href, src }) => href ?? src);
    return performance
      .getEntriesByType('resource')
      .filter(({ name }) => name.endsWith('.js') && !first.includes(name))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  })()`);
  return bytes > MOST_FOR_A_PAGE ? [`loads ${bytes} bytes more than the first page`] : [];
}
