import { expect } from 'chai';
import type { RunBudget } from '../../src/generated/schemas.js';
import { usageOf } from '../../src/run/effort.js';
import type { RunState } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { fakeOpenAi, refuses, says, USAGE } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';
import { resets, resetsMidBody, streams } from '../support/fake-server.js';
import { graphOf } from '../support/given.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { openAiModel } from '../support/provider-models.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { soakIt } from '../support/soak.js';

/** A patient node: a slow machine does not reach its deadline. */
const GRAPH = graphOf('only', { timeoutMs: 600_000, maxOutputTokens: 100 });
const AMPLE: RunBudget = { tokens: 1_000_000, usd: null, onExceeded: 'fail' };
const ANSWERED = USAGE.prompt_tokens + USAGE.completion_tokens;
/** A stream that ends without a text, and reports its usage. */
const EMPTY = streams([{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: USAGE }, '[DONE]']);

describe('A request that is made again within an attempt of a run with a budget', () => {
  let server: FakeOpenAi;
  let dir: TempDir;
  let engine: TestEngine;

  beforeEach(async () => {
    server = await fakeOpenAi();
    dir = tempDir();
    const model = openAiModel({ apiKey: null, baseUrl: server.url, model: 'local' });
    engine = await openTestEngine({ path: dir.path, model });
  });
  afterEach(async () => {
    await engine.stop();
    await server.stop();
    dir.remove();
  });

  async function played(budget: RunBudget, reply: Reply, until?: (run: RunState) => boolean) {
    const runId = nodeSystem().uuid();
    server.answerBy(({ body }) => (body.stream === true ? reply : says('A draft')));
    engine.tokens.subscribe(runId, () => undefined);
    await engine.registry.start({ ...runRequest(runId, { graph: GRAPH }), budget });
    const run = until === undefined ? (await allFinished(engine, [runId]))[0] : await runWhen(engine, runId, until);
    if (run === undefined) throw new Error('The run is not known');
    const events = await checkRecord(engine.log, runId);
    return { run, events, reserved: factsOf(events, 'NodeStarted')[0]?.reserved?.tokens ?? 0 };
  }

  const broken: readonly (readonly [title: string, reply: Reply])[] = [
    ['whose stream breaks off', resetsMidBody],
    ['whose stream is reset before its first byte', resets],
    ['whose stream a gateway has lost', refuses(504)],
  ];
  for (const [title, reply] of broken) {
    it(`counts as its reservation and reserves anew, ${title}`, async () => {
      const { run, events, reserved } = await played(AMPLE, reply);
      expect(run.phase.status).to.equal('completed');
      expect(factsOf(events, 'NodeStarted')).to.have.length(1);
      const [call, ...others] = factsOf(events, 'CallReserved');
      expect(others).to.deep.equal([]);
      expect(call).to.deep.include({ step: 1, attempt: 1, reserved: { tokens: reserved, usd: null } });
      expect(call?.usage).to.include({ inputTokens: null, outputTokens: null });
      expect(run.spending?.spent.tokens).to.equal(reserved + ANSWERED);
      expect(usageOf(run.effort)).to.include({ calls: 2, toldCalls: 1, inputTokens: 11, outputTokens: 7 });
      // The whole attempt is not known, because one of its requests is not; its last call is.
      const [completed] = factsOf(events, 'NodeCompleted');
      expect(completed?.usage).to.include({ inputTokens: null, outputTokens: null });
      expect(completed?.lastCall?.usage).to.include({ inputTokens: 11, outputTokens: 7 });
    });
  }

  it('counts by the usage that it reports although its answer is discarded', async () => {
    const { run, events } = await played(AMPLE, EMPTY);
    expect(factsOf(events, 'CallReserved')[0]?.usage).to.include({ inputTokens: 11, outputTokens: 7 });
    expect(run.spending?.spent.tokens).to.equal(2 * ANSWERED);
    expect(usageOf(run.effort)).to.include({ calls: 2, toldCalls: 2, inputTokens: 22, outputTokens: 14 });
    expect(factsOf(events, 'NodeCompleted')[0]?.usage).to.include({ inputTokens: 22, outputTokens: 14 });
  });

  it('shares the reservation of the refused one, which costs nothing', async () => {
    for (const status of [400, 503]) {
      const { run, events } = await played(AMPLE, refuses(status));
      expect(factsOf(events, 'CallReserved')).to.deep.equal([]);
      expect(run.spending?.spent.tokens).to.equal(ANSWERED);
    }
  });

  it('costs nothing if no server has received it', async () => {
    const runId = nodeSystem().uuid();
    await server.goAway();
    await engine.registry.start({ ...runRequest(runId, { graph: GRAPH }), budget: AMPLE });
    const waiting = await runWhen(engine, runId, ({ progress }) =>
      progress.frontier.some(({ outage }) => outage !== null),
    );
    expect(waiting.spending?.spent).to.deep.equal({ tokens: 0, usd: 0n });
    await server.comeBack();
    const [run] = await allFinished(engine, [runId]);
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'NodeFailed')[0]?.usage).to.include({ inputTokens: 0, outputTokens: 0 });
    expect(factsOf(events, 'CallReserved')).to.deep.equal([]);
    expect(run?.spending?.spent.tokens).to.equal(ANSWERED);
  });

  soakIt('counts as its reservation if a rate limit ends a stream that had begun', async () => {
    const runId = nodeSystem().uuid();
    const cut = streams([{ choices: [{ delta: { content: 'Hel' } }] }, { error: { code: 'rate_limit_exceeded' } }]);
    const replies = [refuses(429), cut];
    server.answerBy((_call, index) => replies[index] ?? says('A draft'));
    engine.tokens.subscribe(runId, () => undefined);
    await engine.registry.start({ ...runRequest(runId, { graph: GRAPH }), budget: AMPLE });
    const [run] = await allFinished(engine, [runId]);
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'NodeFailed').map(({ kind }) => kind)).to.deep.equal(['rate_limited']);
    expect(factsOf(events, 'CallReserved')).to.have.length(1);
    const reserved = factsOf(events, 'NodeStarted').map((each) => each.reserved?.tokens ?? 0);
    expect(run?.spending?.spent.tokens).to.equal(reserved.reduce((sum, each) => sum + each) + ANSWERED);
  });

  it('counts as its reservation if the connection breaks during an outage', async () => {
    const runId = nodeSystem().uuid();
    const replies = [resets, refuses(503), resets];
    server.answerBy((_call, index) => replies[index] ?? says('A draft'));
    await engine.registry.start({ ...runRequest(runId, { graph: GRAPH }), budget: AMPLE });
    const [run] = await allFinished(engine, [runId]);
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'NodeFailed').map(({ kind }) => kind)).to.deep.equal(['connection_lost']);
    const [first, second] = factsOf(events, 'NodeStarted').map(({ reserved }) => reserved?.tokens ?? 0);
    expect(factsOf(events, 'CallReserved')).to.have.length(1);
    expect(run?.spending?.spent.tokens).to.equal((first ?? 0) + (second ?? 0) + ANSWERED);
  });

  it('is not sent if it would pass the budget, and what happens then applies', async () => {
    const { reserved } = await played(AMPLE, EMPTY);
    const tight: RunBudget = { ...AMPLE, tokens: reserved + 50 };
    const before = server.calls.length;
    const failed = await played(tight, resetsMidBody);
    expect(failed.run.phase).to.deep.include({ status: 'failed' });
    expect(failed.events.at(-1)?.data).to.include({ kind: 'budget_exceeded' });
    expect(factsOf(failed.events, 'NodeFailed')[0]).to.include({ kind: 'budget_exceeded', attempt: 1 });
    expect(failed.run.spending?.spent.tokens).to.equal(reserved);
    expect(server.calls.length - before, 'requests').to.equal(1);

    const paused = await played(
      { ...tight, onExceeded: 'pause' },
      resetsMidBody,
      ({ phase }) => phase.status === 'paused',
    );
    expect(factsOf(paused.events, 'RunPaused')[0]).to.include({ reason: 'budget' });
    expect(server.calls.length - before, 'requests').to.equal(2);
    expect(engine.faults).to.deep.equal([]);
  });
});
