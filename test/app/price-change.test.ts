import { expect } from 'chai';
import { neededBudget } from '../../src/run/frontier/start.js';
import type { RunBudget } from '../../src/generated/schemas.js';
import { ANYONE } from '../../src/keys/caller.js';
import { usageOf } from '../../src/run/effort.js';
import { pauseOf } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, says, USAGE } from '../support/fake-openai.js';
import { graphOf } from '../support/given.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { openAiModel } from '../support/provider-models.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const GRAPH = graphOf('plan -> write', { timeoutMs: 600_000, maxOutputTokens: 100 });
const TIGHT: RunBudget = { usd: 0.001, tokens: null, onExceeded: 'pause' };
/** US dollars a token. */
const OLD = 0.001;
const RUN = nodeSystem().uuid();
const TOKENS = USAGE.prompt_tokens + USAGE.completion_tokens;

describe('A run whose prices change at a restart', () => {
  let dir: TempDir;
  let server: FakeOpenAi;
  let engine: TestEngine;

  const open = async (perToken: number): Promise<TestEngine> => {
    const prices = { 'model-x': { input_cost_per_token: perToken, output_cost_per_token: perToken } };
    return await openTestEngine({
      path: dir.path,
      prices,
      model: openAiModel({ apiKey: 'k', baseUrl: server.url, model: 'model-x' }),
    });
  };
  beforeEach(async () => {
    dir = tempDir();
    server = await fakeOpenAi([says('A draft')]);
    engine = await open(OLD);
  });
  afterEach(async () => {
    await engine.stop();
    await server.stop();
    dir.remove();
  });

  const pausedBefore = (node: string) =>
    runWhen(engine, RUN, (run) => pauseOf(run)?.nextNodes[0] === node && pauseOf(run)?.decision === null);
  const approve = async (node: string, factor: number): Promise<number> => {
    const usd = neededBudget(await pausedBefore(node), engine.registry.decisionContext())?.usd ?? 0;
    await engine.registry.decidePause(RUN, {
      caller: ANYONE,
      comment: null,
      keyHash: null,
      bodyHash: node,
      budget: { usd: usd * factor },
      expectedSeq: null,
      choice: { action: 'approve', modifiedState: null },
    });
    return usd;
  };

  it('keeps the recorded cost of its calls, and charges and reserves later calls at the new prices', async () => {
    await engine.registry.start(runRequest(RUN, { graph: GRAPH, budget: TIGHT }));
    await approve('plan', 1.02);
    const before = neededBudget(await pausedBefore('write'), engine.registry.decisionContext())?.usd ?? 0;
    await engine.stop();
    engine = await open(10 * OLD);
    const needed = await approve('write', 1);
    const spent = TOKENS * OLD;
    expect(needed - spent).to.be.closeTo(10 * (before - spent), 1e-4);
    const [run] = await allFinished(engine, [RUN]);
    expect(run?.phase.status).to.equal('completed');
    const costs = factsOf(await checkRecord(engine.log, RUN), 'NodeCompleted').map(({ costUsd }) => costUsd ?? 0);
    expect(costs[0]).to.be.closeTo(TOKENS * OLD, 1e-9);
    expect(costs[1]).to.be.closeTo(TOKENS * 10 * OLD, 1e-9);
    expect(run && usageOf(run.effort).costUsd).to.be.closeTo(TOKENS * 11 * OLD, 1e-9);
  });
});
