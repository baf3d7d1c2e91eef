import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { CouncilClient } from '../../src/client/client.js';
import { budgetPauseText, limitsIn, suggestedLimits } from '../../src/console/record/budget.js';
import type { BudgetStatus } from '../../src/generated/schemas.js';
import { allOf } from '../support/all-of.js';
import { describeInBrowser, faultsIn } from '../support/console-browser.js';
import { factsOf, recordOf } from '../support/record-of.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

const PRICES = { 'scripted/scripted-1': { input_cost_per_token: 0.001, output_cost_per_token: 0.002 } };

describeInBrowser('A budget in the console', (browser) => {
  let service: RunningService;
  let council: CouncilClient;

  beforeEach(async () => {
    const model = scriptedModel(councilScript([9]));
    service = await startService({
      model: { ...model, fullName: (name = 'scripted-1') => `scripted/${name}` },
      prices: PRICES,
    });
    council = new CouncilClient({ url: service.url });
  });
  afterEach(() => service.stop());

  const urlOf = (path: string): string => `${service.url}/console/${path}`;
  /** A run that is paused for its budget of 100 tokens. */
  const pausedRun = async (topic = 'Trees') => {
    const run = await council.runs.start({ topic, budget: { tokens: 100 } });
    for await (const { type } of run.events()) if (type === 'RunPaused') break;
    return run;
  };
  const newTotal = (page: Page) => page.getByRole('textbox', { name: 'New total in tokens' });
  const decisionOn = async (runId: string) =>
    factsOf(await recordOf(service.context.log, runId), 'GateDecided').map(({ action, budget }) => [action, budget]);

  it('is set at the start, approved with a larger one, and the page shows the cost', async () => {
    await (await council.runs.start({ topic: 'Before' })).result();
    const page = await browser.open(urlOf(''));
    await page.getByRole('button', { name: /^Start a run/ }).click();
    await page.getByRole('textbox', { name: 'Topic' }).fill('Trees');
    await page.getByText('Budget (optional)').click();
    await page.getByRole('textbox', { name: 'At most, in US dollars' }).fill('much');
    await page.getByRole('textbox', { name: 'At most, in tokens' }).fill('100');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Start/ })
      .click();
    await page.getByText('Enter dollars above 0, such as 0.50.').waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.getByRole('textbox', { name: 'At most, in US dollars' }).fill('0,5');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Start/ })
      .click();
    await page.getByRole('heading', { name: 'Waiting for a larger budget before' }).waitFor();
    await page.getByText(/^\$0 of \$0\.5, 0 of 100 tokens spent\. To continue/).waitFor();
    expect(Number(await newTotal(page).inputValue())).to.be.greaterThan(8_192);
    expect(await faultsIn(page)).to.deep.equal([]);
    await newTotal(page).fill('90000');
    await page.getByRole('textbox', { name: 'New total in US dollars' }).fill('50');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('completed', { exact: true }).first().waitFor();
    await page.getByText('$0.060 of $50, 45 of 90000 tokens').waitFor();
    const numbers = page.getByRole('complementary', { name: 'About this run' });
    for (const text of ['$0.060', '30 in, 15 out']) await numbers.getByText(text, { exact: true }).waitFor();
  });

  soakIt('is raised or refused on the page of a run, whose pause offers no edit', async () => {
    const run = await pausedRun();
    const page = await browser.open(urlOf(`runs/${run.id}`), { expectsRefusals: true });
    await newTotal(page).fill('101');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText(/The run needs at least \d+ tokens/).waitFor();
    await newTotal(page).fill('-1');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Enter a whole number of tokens').waitFor();
    expect(await page.getByRole('button', { name: 'Edit', exact: true }).count()).to.equal(0);
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText('rejected', { exact: true }).first().waitFor();
    await page.getByText('Rejected at the pause for the budget').first().waitFor();
    expect(await page.getByText('God Mode').count()).to.equal(0);
    expect(await decisionOn(run.id)).to.deep.equal([['reject', undefined]]);
  });

  soakIt('of a fork is shown with that of its run, and is another one if it is changed', async () => {
    const run = await pausedRun();
    const page = await browser.open(urlOf(`runs/${run.id}`));
    await page.getByRole('button', { name: 'Fork here' }).click();
    const dialog = page.getByRole('dialog');
    const tokens = dialog.getByRole('textbox', { name: 'Budget in tokens' });
    expect(await tokens.inputValue()).to.equal('100');
    await tokens.fill('');
    await dialog.getByText('Enter a limit in dollars or tokens.').waitFor();
    expect(await dialog.getByRole('button', { name: 'Start fork' }).isDisabled()).to.equal(true);
    await tokens.fill('90000');
    expect(await faultsIn(page)).to.deep.equal([]);
    await dialog.getByRole('button', { name: 'Start fork' }).click();
    await page.getByText('of 90000 tokens').waitFor();
    const [fork] = await allOf(council.runs.list({ parent: run.id }));
    const [requested] = factsOf(await recordOf(service.context.log, fork?.id ?? ''), 'RunRequested');
    expect(requested?.budget).to.deep.equal({ usd: null, tokens: 90_000, onExceeded: 'pause' });
  });

  soakIt('that finished a run is named as its end on its page', async () => {
    const first = (await (await pausedRun()).pause())?.state.budget?.needed_tokens ?? 0;
    const run = await council.runs.start({ topic: 'Oaks', budget: { tokens: first, on_exceeded: 'finish' } });
    await run.result();
    const page = await browser.open(urlOf(`runs/${run.id}`));
    await page.getByText('Stopped at the budget; later nodes did not run.').waitFor();
    await page.getByText('completed', { exact: true }).first().waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
  });

  soakIt('of a blueprint is set, warned of without a price, and removed in the editor', async () => {
    const { id } = await council.blueprints.create({ name: 'Poets', nodes: [{ id: 'poet', model: 'other' }] });
    const page = await browser.open(urlOf(`blueprints/${id}`));
    await page.getByText('Budget of each run').click();
    const dollars = page.getByRole('textbox', { name: 'At most, in US dollars' });
    await dollars.fill('0.5');
    await page.getByLabel('When the next call would pass it').selectOption('finish');
    await page
      .getByText(/Model "scripted\/other" has no price/)
      .first()
      .waitFor();
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.keyboard.press('Control+s');
    await page.getByText('Version 2').first().waitFor();
    expect((await council.blueprints.get(id)).budget).to.deep.equal({ usd: 0.5, on_exceeded: 'finish' });
    await dollars.fill('');
    await page.keyboard.press('Control+s');
    await page.getByText('Version 3').first().waitFor();
    expect(await council.blueprints.get(id)).to.not.have.property('budget');
  });

  soakIt('is raised in the inbox by one key, with the suggested total', async () => {
    const run = await pausedRun();
    const page = await browser.open(urlOf('inbox'));
    await page.getByText(/^0 of 100 tokens spent\. To continue/).waitFor();
    expect(await page.getByRole('button', { name: 'Edit' }).count()).to.equal(0);
    const tokens = Number(await newTotal(page).inputValue());
    expect(await faultsIn(page)).to.deep.equal([]);
    await page.keyboard.press('e');
    await newTotal(page).fill(String(tokens - 10_000));
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('a');
    await page.getByText(/The run needs at least \d+ tokens/).waitFor();
    await newTotal(page).fill(String(tokens));
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('a');
    await page.getByText('Approved “Trees”').waitFor();
    await untilTrue(async () => (await decisionOn(run.id)).length > 0);
    expect((await decisionOn(run.id))[0]).to.deep.equal(['approve', { usd: null, tokens }]);
  });
});

describe('The budget of a paused run', () => {
  const status: BudgetStatus = {
    usd: 0.01,
    tokens: 100,
    spent_usd: 0,
    spent_tokens: 0,
    on_exceeded: 'pause',
    needed_usd: 0.012_3,
    needed_tokens: 90,
  };

  it('is suggested with twice what the next calls need', () => {
    expect(suggestedLimits(status)).to.deep.equal({ usd: '0.025', tokens: '180' });
    expect(suggestedLimits({ ...status, needed_tokens: 50 }).tokens).to.equal('100');
    expect(suggestedLimits({ ...status, usd: null, needed_tokens: 8_412 })).to.deep.equal({ usd: '', tokens: '17000' });
    expect(suggestedLimits({ ...status, needed_usd: null }).usd).to.equal('0.01');
    for (const needed of [0.000_001, 0.004_999, 1, 9.99, 123_456.7]) {
      const { limits, faults } = limitsIn({ usd: suggestedLimits({ ...status, needed_usd: needed }).usd, tokens: '' });
      expect(limits.usd).to.be.at.least(needed);
      expect(faults).to.deep.equal({});
    }
  });

  it('cannot continue in dollars if a model has no price', () => {
    expect(budgetPauseText({ ...status, needed_usd: null })).to.include('has no price');
    expect(budgetPauseText(status)).to.include('at least $0.0123 and 90 tokens');
  });

  it('is no amount in other words, and none if it is empty', () => {
    expect(limitsIn({ usd: ' ', tokens: '' })).to.deep.equal({ limits: {}, faults: {} });
    expect(limitsIn({ usd: '$1,50', tokens: '7' }).limits).to.deep.equal({ usd: 1.5, tokens: 7 });
    for (const [text, usd] of [
      ['0.5', 0.5],
      ['0,5', 0.5],
      ['1,0005', 1.0005],
      ['0,125', 0.125],
      ['1000', 1000],
    ] as const) {
      expect(limitsIn({ usd: text, tokens: '' }), text).to.deep.equal({ limits: { usd }, faults: {} });
    }
    for (const text of ['1,000', '$1,000', '12,345', '1,000,000', '1,000.50']) {
      const { limits, faults } = limitsIn({ usd: text, tokens: '' });
      expect(faults.usd, text).to.match(/comma before three digits may mean thousands/);
      expect(limits, text).to.deep.equal({});
    }
    for (const text of ['0', '-1', 'x', '1e3']) {
      expect(limitsIn({ usd: text, tokens: text }).faults, text).to.have.keys('usd', 'tokens');
    }
  });
});
