import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { describeInBrowser, faultsIn, overweight, settled } from '../support/console-browser.js';
import { startHostileService } from '../support/hostile-service.js';
import type { LivedInService } from '../support/lived-in-service.js';
import { startLivedInService } from '../support/lived-in-service.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

/** Roles of interactive elements, each of which needs a name. */
const UNNAMED =
  /^\s*- (button|link|textbox|searchbox|combobox|listbox|checkbox|radio|switch|spinbutton|slider|tab|menuitem|progressbar|dialog)\b(?! ["/])/m;

const CHOSEN_VIEW_STANDS_OUT = `(() => {
  const chosen = document.querySelector('.segments [aria-pressed=true]');
  const [one, other] = [chosen, chosen.parentElement].map((each) => getComputedStyle(each).backgroundColor);
  return one !== other;
})()`;

/** Buttons that need more than the scope `read`. */
const FORBIDDEN =
  /^(approve|edit|edit the draft|reject|cancel the run|fork here|start.*|save|delete.*|upload pdfs|import a file|undo|redo|add.*|lay out|restore.*|test)$/i;

describeInBrowser('Every page of the console', (browser) => {
  let town: LivedInService;

  before(async () => {
    town = await startLivedInService();
  });
  after(() => town.stop());

  const paths = (): readonly string[] => [
    '',
    '?status=paused',
    `runs/${town.runs.built}`,
    `runs/${town.runs.guided}?at=14`,
    `runs/${town.runs.paused}`,
    `runs/${town.runs.live}`,
    `runs/${town.runs.failed}`,
    `runs/${town.runs.built}?tab=step&step=2`,
    `runs/${town.runs.built}?view=ran`,
    `runs/${town.runs.built}?tab=events&at=5`,
    `runs/${town.runs.guided}?tab=sources`,
    `runs/${town.runs.guided}?tab=changes`,
    `runs/${town.runs.guided}?tab=timeline`,
    `compare?a=${town.runs.guided}&b=${town.runs.fork}`,
    'inbox',
    'blueprints',
    `blueprints/${town.blueprint}`,
    'blueprints/night-desk',
    'documents?q=sauna',
    `documents/${town.document}?page=2&chunk=1`,
    `runs/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`,
  ];

  async function signedIn(context: BrowserContext, name: 'ann' | 'eve' = 'ann'): Promise<void> {
    await context.request.post(`${town.url}/api/session`, { data: { key: town.keys[name] } });
  }

  it('has one heading, one main element, named controls, no accessibility fault and at most 60 KB more than the first', async () => {
    const page = await browser.open(`${town.url}/console/`, { expectsRefusals: true });
    await settled(page);
    const found = [...(await faultsOf(page, 'sign-in'))];
    await signedIn(page.context());
    for (const path of paths()) {
      await page.goto(`${town.url}/console/${path}`);
      await settled(page);
      found.push(...(await faultsOf(page, path)));
    }
    expect(found).to.deep.equal([]);
  });

  it('shows the tool results and failed attempts of a step', async () => {
    const page = await browser.open(`${town.url}/console/nothing`, { expectsRefusals: true });
    await signedIn(page.context());
    await page.goto(`${town.url}/console/runs/${town.runs.guided}?tab=step&step=1`);
    const found = page.getByRole('link', { name: /\.pdf, page \d+, chunk \d+$/ }).first();
    await page.getByText('Tools:').waitFor();
    expect(await found.getAttribute('href')).to.match(/^\/console\/documents\/[0-9a-f]{64}\?page=\d+&chunk=\d+$/);
    await page.goto(`${town.url}/console/runs/${town.runs.built}?tab=step&step=2`);
    const [failed, done] = [1, 2].map((attempt) => page.getByRole('region', { name: `Attempt ${attempt}` }));
    await failed?.getByText('The model is overloaded').waitFor();
    await done?.getByText('Completed in').waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate(CHOSEN_VIEW_STANDS_OUT), 'the chosen view, in the dark').to.equal(true);
  });

  soakIt('shows a read-only key no button that it may not use', async () => {
    const page = await browser.open(`${town.url}/console/nothing`, { expectsRefusals: true });
    await signedIn(page.context(), 'eve');
    for (const path of [...paths(), 'inbox?whose=all', `blueprints/${town.blueprint}?tab=versions`]) {
      await page.goto(`${town.url}/console/${path}`);
      await settled(page);
      expect(await page.getByRole('button', { name: FORBIDDEN }).count(), path).to.equal(0);
    }
    await page.goto(`${town.url}/console/runs/${town.runs.paused}`);
    await page.getByText('Your key may not decide.').waitFor();
    await page.getByRole('button', { name: 'Share' }).waitFor();
    await page.goto(`${town.url}/console/blueprints/${town.blueprint}`);
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('readonly')).to.not.equal(null);
  });

  it('shows hostile texts as text', async () => {
    const hostile = await startHostileService();
    try {
      const page = await browser.open(`${hostile.url}/console/`);
      for (const path of hostile.paths) {
        await page.goto(`${hostile.url}/console/${path}`);
        await settled(page);
        await untilTrue(async () => (await page.locator('main').ariaSnapshot()).includes('globalThis.stolen'));
        expect(await page.locator('main :is(img, script, iframe)').count(), path).to.equal(0);
        expect(await page.evaluate('globalThis.stolen'), path).to.equal(undefined);
      }
      await page.close();
    } finally {
      await hostile.stop();
    }
  });
});

/** The faults of a page, each with its address. */
async function faultsOf(page: Page, path: string): Promise<readonly string[]> {
  const [headings, mains] = [page.getByRole('heading', { level: 1 }), page.getByRole('main')];
  const unnamed = UNNAMED.exec(await page.locator('body').ariaSnapshot())?.[1];
  return [
    ...((await headings.count()) === 1 ? [] : ['has not one h1']),
    ...((await mains.count()) === 1 ? [] : ['has not one main']),
    ...(unnamed === undefined ? [] : [`has a ${unnamed} without a name`]),
    ...(await faultsIn(page, true)),
    ...(await overweight(page)),
  ].map((fault) => `/console/${path}: ${fault}`);
}
