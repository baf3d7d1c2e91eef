import { geminiModel, openAiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { System } from '../../src/system/system.js';
import type { LanguageModel } from '../../src/models/port.js';
import { fakeGemini, refuses as geminiRefuses } from '../support/fake-gemini.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { councilOf, fakeOpenAi, refuses } from '../support/fake-openai.js';
import type { Reply } from '../support/fake-server.js';
import { resets, resetsMidBody } from '../support/fake-server.js';
import type { OpenEngineOptions, TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished, runWhen } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { flatState } from '../support/whole-run.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { openLog } from '../../src/eventlog/open.js';
import { failureOf } from '../../src/run/state.js';

const { uuid } = nodeSystem();

/** Timers that run fifty times as fast, so that the test does not wait long between two probes of a server. */
function hasty(aheadMs = 0): System {
  const system = nodeSystem();
  return {
    ...system,
    now: () => new Date(Date.parse(system.now()) + aheadMs).toISOString(),
    after: (delayMs, callback) => system.after(delayMs / 50, callback),
  };
}

/** A deadline that a slow machine does not reach, although it passes fifty times as fast too. */
const PATIENT = fixedGraph({ timeoutMs: 600_000, maxAttempts: 4 });

describe("A model server's outage", () => {
  let server: FakeOpenAi;
  let dir: TempDir;
  let engines: TestEngine[];

  beforeEach(async () => {
    server = await fakeOpenAi();
    dir = tempDir();
    engines = [];
  });
  afterEach(async () => {
    for (const engine of engines) await engine.stop();
    await server.stop();
    dir.remove();
  });

  const modelAt = (url: string): LanguageModel => openAiModel({ apiKey: null, baseUrl: url, model: 'local' });

  async function open(options: Partial<OpenEngineOptions> = {}): Promise<TestEngine> {
    const system = options.system ?? hasty();
    const engine = await openTestEngine({
      path: dir.path,
      model: modelAt(server.url),
      system,
      // The server of the log answers in real time.
      openLog: (at) => openLog({ ...at, system: nodeSystem() }),
      ...options,
    });
    let stopped: Promise<void> | null = null;
    const kept = { ...engine, stop: () => (stopped ??= engine.stop()) };
    engines.push(kept);
    await kept.recover();
    return kept;
  }

  async function start(engine: TestEngine): Promise<string> {
    const runId = uuid();
    await engine.registry.start(runRequest(runId, { graph: PATIENT }));
    return runId;
  }

  /** Waits until a run has recorded a failure by the outage. */
  const waitsItOut = (engine: TestEngine, runId: string): Promise<unknown> =>
    runWhen(engine, runId, ({ progress }) => progress.frontier.some(({ outage }) => outage !== null));

  /** Ends the engine as a kill does. */
  async function kill(engine: TestEngine): Promise<void> {
    await engine.log.close();
    await engine.stop();
  }

  const rows: readonly [title: string, reply: Reply, kind: string][] = [
    ['that resets connections', resets, 'connection_lost'],
    ['that is killed in the middle of an answer', resetsMidBody, 'connection_lost'],
    ['behind a proxy that answers 502', refuses(502), 'bad_gateway'],
    ['that is loading its model and answers 503', refuses(503, { message: 'Loading model' }), 'unavailable'],
    ['that is overloaded and answers 529', refuses(529), 'overloaded'],
  ];
  for (const [title, reply, kind] of rows) {
    it(`fails no run with more failures than a node has attempts: a server ${title}`, async () => {
      const council = councilOf([8]);
      server.answerBy((call, index) => (index < 6 ? reply : council(call, index)));
      const engine = await open();
      const runId = await start(engine);
      await allFinished(engine, [runId]);
      const events = await checkRecord(engine.log, runId);
      expect(events.at(-1)?.type).to.equal('RunCompleted');
      const failures = factsOf(events, 'NodeFailed');
      expect(failures.map((each) => each.kind)).to.deep.equal([kind]);
      expect(failures[0]).to.include({ step: 1, attempt: 1, retryable: true, outageMs: 120_000 });
      expect(factsOf(events, 'NodeCompleted')[0]).to.include({ step: 1, attempt: 2 });
    });
  }

  it('fails no run that starts while no server listens, and none while Gemini is overloaded', async () => {
    await server.goAway();
    const engine = await open();
    const runId = await start(engine);
    await waitsItOut(engine, runId);
    await server.comeBack();
    await allFinished(engine, [runId]);
    expect(factsOf(await checkRecord(engine.log, runId), 'NodeFailed').map(({ kind }) => kind)).to.deep.equal([
      'connection_refused',
    ]);
    await engine.stop();

    const gemini = await fakeGemini([geminiRefuses(503), geminiRefuses(503), geminiRefuses(500)]);
    try {
      const system = hasty();
      const model = geminiModel({ apiKey: 'k', baseUrl: gemini.url, model: 'gemini-x' });
      const other = await open({ model, system });
      const second = await start(other);
      await allFinished(other, [second]);
      const failures = factsOf(await checkRecord(other.log, second), 'NodeFailed');
      expect(failures.map(({ kind, outageMs }) => [kind, outageMs])).to.deep.equal([
        ['unavailable', 120_000],
        ...Array.from({ length: 4 }, () => ['server_error', undefined]),
      ]);
    } finally {
      await gemini.stop();
    }
  });

  it('fails a run when its budget is used up, naming the model and the duration', async () => {
    await server.goAway();
    const engine = await open({ modelOutageMs: 200 });
    const runId = await start(engine);
    const [run] = await allFinished(engine, [runId]);
    expect(run && failureOf(run)?.error).to.match(
      /^Node "master_agent": Model "local" was unreachable for \d+\.\d s: .*refused/,
    );
    const events = await checkRecord(engine.log, runId);
    expect(events.slice(-4).map(({ type }) => type)).to.deep.equal([
      ...['NodeFailed', 'NodeStarted'],
      ...['NodeFailed', 'RunFailed'],
    ]);
    expect(factsOf(events, 'NodeFailed').map(({ attempt, retryable }) => [attempt, retryable])).to.deep.equal([
      [1, true],
      [2, false],
    ]);
  });

  it('ends at once for a cancelled run, and continues for the others', async () => {
    await server.goAway();
    const engine = await open({ system: nodeSystem() });
    const [cancelled, kept] = [await start(engine), await start(engine)];
    await Promise.all([cancelled, kept].map((runId) => waitsItOut(engine, runId)));
    expect(flatState(await engine.registry.cancel(cancelled))).to.include({ status: 'failed' });
    await server.comeBack();
    const [run] = await allFinished(engine, [kept]);
    expect(run?.phase.status).to.equal('completed');
  });

  it('continues over restarts of the service, and runs wait until it ends', async () => {
    await server.goAway();
    const first = await open();
    const runId = await start(first);
    await waitsItOut(first, runId);
    await first.stop();
    const second = await open();
    await runWhen(second, runId, ({ ownership }) => ownership.epoch === 2);
    await kill(second);
    const third = await open();
    await runWhen(third, runId, ({ ownership }) => ownership.epoch === 3);
    await server.comeBack();
    await allFinished(third, [runId]);
    const events = await checkRecord(third.log, runId);
    expect(events.at(-1)?.type).to.equal('RunCompleted');
    expect(factsOf(events, 'NodeFailed')).to.have.length(1);
    expect(
      factsOf(events, 'NodeStarted')
        .slice(0, 4)
        .map(({ step, attempt }) => [step, attempt]),
    ).to.deep.equal([...[1, 2, 3, 4].map((attempt) => [1, attempt])]);
  });

  it('keeps the used part of its budget over a restart of the service', async () => {
    await server.goAway();
    const first = await open();
    const runId = await start(first);
    await waitsItOut(first, runId);
    await kill(first);
    const later = await open({ system: hasty(119_900) });
    const [run] = await allFinished(later, [runId]);
    expect(run && failureOf(run)?.error).to.match(/Model "local" was unreachable for 1[12]\d\.\d s/);
    expect(factsOf(await checkRecord(later.log, runId), 'NodeFailed')).to.have.length(2);
  });

  it('is probed by one of many runs, and all of them continue', async () => {
    const council = councilOf([8]);
    let isOut = true;
    server.answerBy((call, index) => (isOut ? refuses(503) : council(call, index)));
    const engine = await open({ system: nodeSystem(), maxModelCalls: 8 });
    const runIds = await Promise.all(Array.from({ length: 40 }, () => start(engine)));
    await Promise.all(runIds.map((runId) => waitsItOut(engine, runId)));
    const met = server.calls.length;
    await server.until(() => server.calls.length >= met + 2);
    // The calls in flight when the first was refused, and since then one probe after the other.
    expect(server.calls.length).to.be.lessThan(runIds.length / 2);
    isOut = false;
    const runs = await allFinished(engine, runIds);
    expect(runs.every(({ phase }) => phase.status === 'completed')).to.equal(true);
    for (const runId of runIds) {
      expect(factsOf(await checkRecord(engine.log, runId), 'NodeFailed')).to.have.length(1);
    }
  });
});
