/**
 * Makes pictures of every page, light and dark, wide and on a phone: `npm run screenshots [FOLDER] [-- WORDS]`.
 * Without a folder it prints the name of a new one; the four pictures of the README go to test/console/screenshots.
 */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { CHROMIUM, NO_CHROMIUM } from '../support/chromium.js';
import { settled } from '../support/console-browser.js';
import type { LivedInService } from '../support/lived-in-service.js';
import { NOW, startLivedInService } from '../support/lived-in-service.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

interface Picture {
  readonly name: string;
  /** The path below /console/. */
  readonly path: (seeds: LivedInService) => string;
  /** The service: the town's, a new one, or the town's before the user signs in. Default: the town's. */
  readonly at?: 'new' | 'locked';
  /** Actions on the page before the picture. */
  readonly act?: (page: Page, seeds: LivedInService) => Promise<void>;
}

const PICTURES: readonly Picture[] = [
  { name: 'sign-in', path: () => '', at: 'locked' },
  { name: 'runs-empty', path: () => '', at: 'new' },
  { name: 'runs', path: () => '' },
  { name: 'runs-filtered', path: () => '?outcome=failed&q=night' },
  { name: 'run', path: ({ runs }) => `runs/${runs.guided}` },
  { name: 'run-live', path: ({ runs }) => `runs/${runs.live}`, act: writeOn },
  { name: 'run-paused', path: ({ runs }) => `runs/${runs.paused}` },
  { name: 'run-failed', path: ({ runs }) => `runs/${runs.failed}` },
  { name: 'run-moment', path: ({ runs }) => `runs/${runs.guided}?at=14` },
  { name: 'run-graph', path: ({ runs }) => `runs/${runs.guided}?tab=graph&step=1` },
  { name: 'run-steps', path: ({ runs }) => `runs/${runs.guided}?tab=step&step=2` },
  { name: 'run-timeline', path: ({ runs }) => `runs/${runs.guided}?tab=timeline` },
  { name: 'run-sources', path: ({ runs }) => `runs/${runs.guided}?tab=sources` },
  { name: 'run-missing', path: () => 'runs/00000000-0000-4000-8000-000000000000' },
  { name: 'compare', path: ({ runs }) => `compare?a=${runs.guided}&b=${runs.fork}` },
  { name: 'inbox', path: () => 'inbox' },
  { name: 'inbox-prompt', path: () => 'inbox', act: openPrompt },
  { name: 'inbox-edit', path: () => 'inbox', act: (page) => page.getByRole('button', { name: 'Edit' }).click() },
  { name: 'inbox-undo', path: ({ runs }) => `inbox?run=${runs.paused}`, act: approveIt },
  { name: 'inbox-empty', path: () => 'inbox', at: 'new' },
  { name: 'run-setup', path: ({ runs }) => `runs/${runs.paused}?tab=graph&node=editor` },
  { name: 'blueprints', path: () => 'blueprints' },
  { name: 'blueprints-empty', path: () => 'blueprints', at: 'new' },
  { name: 'blueprint', path: ({ blueprint }) => `blueprints/${blueprint}` },
  { name: 'blueprint-faulty', path: () => 'blueprints/night-desk' },
  { name: 'overview', path: () => 'overview' },
  { name: 'models', path: () => 'models' },
  { name: 'settings', path: () => 'settings' },
  { name: 'settings-keys', path: () => 'settings?tab=keys' },
  { name: 'documents', path: () => 'documents' },
  { name: 'documents-empty', path: () => 'documents', at: 'new' },
  { name: 'documents-search', path: () => 'documents?q=what does a sauna cost' },
  { name: 'document', path: ({ document }) => `documents/${document}?page=2&chunk=1` },
];

/** On a phone, the part that holds the prompt is closed at first. */
async function openPrompt(page: Page): Promise<void> {
  const prompt = page.getByText(/^Prompt that is sent/);
  if (!(await prompt.isVisible())) await page.locator('.next-step summary').first().click();
  await prompt.click();
}

/** Approves the selected run; the picture is taken before the decision is sent. */
async function approveIt(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
}

/** The draft of the live run, in pieces. */
async function writeOn(page: Page, town: LivedInService): Promise<void> {
  const socket = page.waitForEvent('websocket');
  await page.reload();
  await (await socket).waitForEvent('framereceived');
  town.write();
  await page.getByRole('region', { name: /is writing/ }).waitFor();
}

/** The pictures of the README. */
const SHOWN_THERE = ['run-light-1280', 'overview-light-1280', 'inbox-light-360', 'blueprint-dark-1280'];
const FOLDER_OF_README = fileURLToPath(new URL('../../../test/console/screenshots/', import.meta.url));

const LOOKS = [
  { name: 'light-1280', width: 1280, isDark: false },
  { name: 'dark-1280', width: 1280, isDark: true },
  { name: 'light-1440', width: 1440, isDark: false },
  { name: 'dark-1440', width: 1440, isDark: true },
  { name: 'light-360', width: 360, isDark: false },
  { name: 'dark-360', width: 360, isDark: true },
] as const;

interface Services {
  readonly town: LivedInService;
  readonly fresh: RunningService;
}

/** @param wanted words of which the name of a picture contains one, or no words for all pictures */
async function takeAll(folder: string | null, wanted: readonly string[]): Promise<void> {
  if (CHROMIUM === null) throw new Error(`A picture ${NO_CHROMIUM}`);
  const others = folder ?? mkdtempSync(join(tmpdir(), 'console-'));
  mkdirSync(others, { recursive: true });
  const [town, fresh] = [await startLivedInService(), await startService()];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  try {
    for (const picture of PICTURES) {
      for (const look of LOOKS) {
        const name = `${picture.name}-${look.name}`;
        if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
        const isForReadme = folder === null && SHOWN_THERE.includes(name);
        const file = join(isForReadme ? FOLDER_OF_README : others, `${name}.png`);
        await take(picture, { browser, look, file, isWhole: !isForReadme, services: { town, fresh } });
      }
    }
  } finally {
    await browser.close();
    await Promise.all([town.stop(), fresh.stop()]);
  }
  console.log(`Pictures are in ${others}${folder === null ? `, those of the README in ${FOLDER_OF_README}` : ''}`);
}

interface Take {
  readonly browser: Browser;
  readonly look: (typeof LOOKS)[number];
  readonly file: string;
  /** Whether the picture shows the whole page, not only what the window shows. */
  readonly isWhole: boolean;
  readonly services: Services;
}

async function take(
  { path, at, act }: Picture,
  { browser, look, file, isWhole, services: { town, fresh } }: Take,
): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.width === 360 ? 780 : 860 },
    deviceScaleFactor: look.width === 360 ? 2 : 1,
    colorScheme: look.isDark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  try {
    const { url } = at === 'new' ? fresh : town;
    if (at === undefined) await context.request.post(`${url}/api/session`, { data: { key: town.keys.ann } });
    const page = await context.newPage();
    // The service uses the clock of the example history, but its HTTP server uses the real clock.
    await context.route('**/api/health', (asked) => asked.fulfill({ headers: { Date: new Date(NOW).toUTCString() } }));
    await page.clock.setFixedTime(NOW);
    await page.goto(`${url}/console/${path(town)}`);
    await atRest(page);
    if (act !== undefined) {
      await act(page, town);
      await atRest(page);
    }
    await page.screenshot({ path: file, fullPage: isWhole });
  } finally {
    await context.close();
  }
}

/** Waits until the latest changes are rendered and the layout is stable. */
async function atRest(page: Page): Promise<void> {
  await settled(page);
  await page.waitForTimeout(400);
}

const words = process.argv.slice(2);
const [first] = words;
const folder = first?.includes('/') === true ? first : null;
await takeAll(folder, folder === null ? words : words.slice(1));
