import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { describeInBrowser, settled } from '../support/console-browser.js';
import { CouncilClient } from '../../src/client/client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { soakIt } from '../support/soak.js';

const STYLES = new URL('../../../src/console/styles/', import.meta.url);
const PLACES = ['', 'inbox', 'blueprints', 'blueprints/new', 'documents', 'overview', 'models', 'settings'];

describe('The styles of the console', () => {
  it('use three font weights: 400, 600 and 700', () => {
    const all = readdirSync(STYLES).map((file) => readFileSync(new URL(file, STYLES), 'utf8'));
    const weights = all.flatMap((css) => [...css.matchAll(/font-weight: (.*);/g)].map(([, weight]) => weight));
    expect(new Set(weights)).to.deep.equal(new Set(['400', '600', '700']));
  });
});

describeInBrowser('The look of the console', (browser) => {
  let service: RunningService;
  let waiting = '';

  before(async () => {
    service = await startService();
    // A waiting run, so that the navigation shows its count.
    const council = new CouncilClient({ url: service.url });
    const nodes = [{ id: 'writer', label: 'Writer' }];
    const blueprint = await council.blueprints.create({ name: 'One writer', nodes, edges: [] });
    const run = await council.runs.start({ topic: 'The sea', blueprint, godMode: true });
    waiting = run.id;
  });
  after(() => service.stop());

  async function openAt(width: number, place: string): Promise<Page> {
    const page = await browser.open(`${service.url}/console/${place}`);
    await page.setViewportSize({ width, height: 800 });
    await page.getByText('Offline model: no language model is asked').waitFor();
    await settled(page);
    return page;
  }

  soakIt('begins every page at one left edge, under the name of the product', async () => {
    const page = await openAt(1600, '');
    const edge = await leftOf(page, '.brand');
    for (const place of PLACES) {
      await page.goto(`${service.url}/console/${place}`);
      await settled(page);
      expect(await leftOf(page, 'main h1:not(.unseen)'), place).to.equal(edge);
    }
    await page.close();
  });

  soakIt('draws the border of a field with a contrast of at least 3:1 (WCAG 1.4.11), light and dark', async () => {
    const page = await openAt(1280, '');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const colours = await page.evaluate<readonly string[]>(
        "(({ borderTopColor, backgroundColor }) => [borderTopColor, backgroundColor])(getComputedStyle(document.querySelector('input.input')))",
      );
      const [lighter = 0, darker = 0] = colours.map(luminanceOf).sort((one, other) => other - one);
      expect((lighter + 0.05) / (darker + 0.05), `${colorScheme}: ${colours.join(' on ')}`).to.be.at.least(3);
    }
    await page.close();
  });

  soakIt('shows the whole name of every page in the navigation at 1280 and 1024 pixels', async () => {
    for (const width of [1280, 1024]) {
      const page = await openAt(width, '');
      const hidden = await page.evaluate<number>(
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.bar nav'))",
      );
      expect(hidden, `${width} px`).to.equal(0);
      await page.close();
    }
  });

  soakIt('shows the whole name of the current page in the navigation of a phone', async () => {
    for (const place of ['overview', 'models']) {
      const page = await browser.open(`${service.url}/console/${place}`, { width: 360 });
      await settled(page);
      await page.getByRole('link', { name: 'Inbox 1' }).waitFor();
      const [nav, link] = [page.getByRole('navigation', { name: 'Pages' }), page.locator('nav [aria-current=page]')];
      const [frame, box] = [await nav.boundingBox(), await link.boundingBox()];
      if (frame === null || box === null) throw new Error('The navigation is not shown');
      expect(box.x + box.width, place).to.be.at.most(frame.x + frame.width + 0.5);
      await page.close();
    }
  });

  soakIt('shows every tab of a run at 800 pixels', async () => {
    const page = await openAt(800, `runs/${waiting}`);
    await page.getByRole('tab', { name: 'Draft' }).waitFor();
    const hidden = await page.evaluate<number>(
      "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('[role=tablist]'))",
    );
    expect(hidden).to.equal(0);
    await page.close();
  });

  soakIt('lets nothing cover the buttons of a decision on a phone, however high', async () => {
    for (const place of [`runs/${waiting}`, 'inbox']) {
      const page = await browser.open(`${service.url}/console/${place}`, { width: 360, height: 740 });
      for (const name of ['Approve', 'Edit', 'Reject']) await page.getByRole('button', { name }).waitFor();
      for (let height = 480; height <= 760; height += 20) {
        await page.setViewportSize({ width: 360, height });
        const covered = await page.evaluate<readonly string[]>(`(() => {
          const buttons = [...document.querySelectorAll('main button')];
          return buttons
            .filter(({ textContent }) => /^(Approve|Edit|Reject)/.test(textContent))
            .filter((button) => {
              const { x, y, width, height } = button.getBoundingClientRect();
              return !button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
            })
            .map(({ textContent }) => textContent);
        })()`);
        expect(covered, `${place}, ${height} px high`).to.deep.equal([]);
      }
      await page.close();
    }
  });

  soakIt('aligns numbers with the heads of their columns, at the right', async () => {
    const page = await openAt(1280, 'models');
    await page.getByRole('columnheader', { name: 'Input' }).waitFor();
    const aligned = await page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('.numeric:is(th, td)')].map((cell) => getComputedStyle(cell).textAlign)",
    );
    expect(aligned.length).to.be.above(10);
    expect(new Set(aligned)).to.deep.equal(new Set(['right']));
    await page.close();
  });
});

/** The left edge of the first element, in CSS pixels. */
async function leftOf(page: Page, selector: string): Promise<number> {
  const box = await page.locator(selector).first().boundingBox();
  if (box === null) throw new Error(`${selector} is not shown`);
  return box.x;
}

/** The relative luminance of WCAG 2. @param colour `rgb(r, g, b)` */
function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [...colour.matchAll(/\d+/g)].map(([byte]) => {
    const part = Number(byte) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
