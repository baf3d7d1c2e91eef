import { openAiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { GraphNode } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import type { FakeLlama, LlamaTraits } from '../support/fake-llama.js';
import { fakeLlama } from '../support/fake-llama.js';
import { graphOf } from '../support/given.js';
import { memoryChunks } from '../support/memory-chunks.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { flatState } from '../support/whole-run.js';

/** The smallest jitter. */
const system = { ...nodeSystem(), random: () => 0 };
const TREES = { filename: 'trees.pdf', pages: ['Oaks grow slowly.'] };
const READER: Partial<GraphNode> = { tools: { webSearch: false, pdfReader: true }, timeoutMs: 10_000, maxAttempts: 1 };
const JUDGED = 'plan -> judge?; judge -approve-> end';

describe("A council on a server like llama.cpp's", () => {
  let dir: TempDir;
  let engine: TestEngine;
  let server: FakeLlama;

  const open = async (traits: LlamaTraits = {}, addressOf = (url: string) => `${url}/v1`): Promise<void> => {
    server = await fakeLlama(traits);
    const model = openAiModel({ apiKey: null, baseUrl: addressOf(server.url), model: 'local' });
    engine = await openTestEngine({ path: dir.path, model, system, chunkSearch: memoryChunks([TREES]) });
  };
  const start = async (fields: Partial<GraphNode> = {}): Promise<string> => {
    const runId = system.uuid();
    await engine.registry.start(runRequest(runId, { graph: graphOf(JUDGED, fields) }));
    return runId;
  };
  const ended = async (runId: string): Promise<{ run: RunState | undefined; events: readonly RunEvent[] }> => {
    const [run] = await allFinished(engine, [runId]);
    return { run, events: await checkRecord(engine.log, runId) };
  };

  beforeEach(() => {
    dir = tempDir();
  });
  afterEach(async () => {
    await engine.stop();
    await server.stop();
    dir.remove();
  });

  it('gets a score from 0 to 10, although the grammar of the server ignores the bounds of numbers', async () => {
    await open();
    const { run, events } = await ended(await start());
    expect(flatState(run)).to.include({ status: 'completed', finalDraft: 'A draft.' });
    expect(run?.progress.shown.score).to.equal(10);
    expect(factsOf(events, 'NodeFailed')).to.deep.equal([]);
    expect(server.calls).to.have.length(3);
  });

  it('removes thoughts from drafts, and asks a critic again with a schema if the prompt alone fails', async () => {
    await open({ thoughts: 'Let me think. {"score": 3, "feedback": "no"}\n</think>\n\n' });
    const { run } = await ended(await start(READER));
    expect(flatState(run)).to.include({ status: 'completed', finalDraft: 'A draft.' });
    const critiques = server.calls.filter(({ body }) => body.messages[0]?.content?.includes('"score" is a number'));
    expect(critiques.map(({ body }) => [body.tools !== undefined, body.response_format !== undefined])).to.deep.equal([
      [true, true],
      [true, false],
      [false, true],
    ]);
  });

  it('waits while the server loads its model and loses no run', async () => {
    await open({ loading: 2 });
    const { run, events } = await ended(await start());
    expect(flatState(run)).to.include({ status: 'completed' });
    expect(factsOf(events, 'NodeFailed').map(({ kind }) => kind)).to.contain('unavailable');
  });

  it('fails at once if https:// is set for a plain HTTP port, and names the setting', async () => {
    await open({}, (url) => url.replace('http:', 'https:'));
    const { run, events } = await ended(await start());
    expect(run?.phase.status).to.equal('failed');
    expect(factsOf(events, 'RunFailed')[0]?.error).to.include('check OPENAI_BASE_URL, http:// for https://');
    expect(factsOf(events, 'NodeFailed')).to.have.length(1);
  });

  it('shares the single slot of the server, and every run completes', async () => {
    await open();
    const runs = await Promise.all(Array.from({ length: 5 }, () => start()));
    const states = await allFinished(engine, runs);
    expect(states.map(({ phase }) => phase.status)).to.deep.equal(runs.map(() => 'completed'));
    expect(server.mostAtOnce()).to.equal(1);
  });
});
