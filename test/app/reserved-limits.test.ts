import { expect } from 'chai';
import type { RunBudget } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { mostTokens } from '../../src/run/budget/spending.js';
import { nodeSystem } from '../../src/system/system.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { fakeAnthropic, says as saysAnthropic } from '../support/fake-anthropic.js';
import { fakeGemini, says as saysGemini } from '../support/fake-gemini.js';
import { fakeOpenAi, refuses, says } from '../support/fake-openai.js';
import type { FakeServer, Script } from '../support/fake-server.js';
import { resetsMidBody } from '../support/fake-server.js';
import { graphOf } from '../support/given.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { geminiModel, modelAt, openAiModel } from '../support/provider-models.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const AMPLE: RunBudget = { usd: null, tokens: 10_000_000, onExceeded: 'fail' };

interface Provider {
  readonly server: FakeServer<unknown>;
  readonly model: LanguageModel;
}

async function openAi(script: Parameters<typeof fakeOpenAi>[0] = [says('A draft')]): Promise<Provider> {
  const server = await fakeOpenAi(script);
  return { server, model: openAiModel({ apiKey: 'k', baseUrl: server.url, model: 'model-x' }) };
}

async function anthropic(model: string): Promise<Provider> {
  const server = await fakeAnthropic([saysAnthropic('A draft')]);
  return { server, model: await modelAt('anthropic', { apiKey: 'k', baseUrl: server.url, model }) };
}

async function gemini(): Promise<Provider> {
  const server = await fakeGemini([saysGemini('A draft')]);
  return { server, model: geminiModel({ apiKey: 'k', baseUrl: server.url, model: 'gemini-x' }) };
}

/** A reasoning model of OpenAI, which knows the limit by another name only. */
const reasoning: Script<{ readonly max_tokens?: number; readonly max_completion_tokens?: number }> = ({ body }) =>
  body.max_tokens === undefined
    ? says('A draft')
    : refuses(400, { message: "Unsupported parameter: use 'max_completion_tokens' instead of 'max_tokens'." });

describe('The output limit that a run with a budget reserves', () => {
  let dir: TempDir;
  let engine: TestEngine;
  let server: FakeServer<unknown>;

  beforeEach(() => (dir = tempDir()));
  afterEach(async () => {
    await engine.stop();
    await server.stop();
    dir.remove();
  });

  /** The output limits of all reservations of a run, in the record's order. */
  async function reservedLimits(provider: Provider, maxOutputTokens: number | undefined): Promise<readonly number[]> {
    ({ server } = provider);
    engine = await openTestEngine({ path: dir.path, model: provider.model });
    const runId = nodeSystem().uuid();
    engine.tokens.subscribe(runId, () => undefined);
    const fields = { timeoutMs: 600_000, ...(maxOutputTokens !== undefined && { maxOutputTokens }) };
    await engine.registry.start(runRequest(runId, { graph: graphOf('plan', fields), budget: AMPLE }));
    await allFinished(engine, [runId]);
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'RunCompleted')).to.have.length(1);
    const input = textsIn(server.calls[0]?.body).reduce((sum, text) => sum + mostTokens(text), 0);
    const reserving = [...factsOf(events, 'NodeStarted'), ...factsOf(events, 'CallReserved')];
    return reserving.map(({ reserved }) => (reserved?.tokens ?? 0) - input);
  }

  const wires: readonly (readonly [title: string, open: () => Promise<Provider>, sent: (body: unknown) => unknown])[] =
    [
      ['chat completions', () => openAi(), (body) => fieldOf(body, 'max_tokens')],
      [
        'a model that knows only max_completion_tokens',
        () => openAi(reasoning),
        (body) => fieldOf(body, 'max_completion_tokens'),
      ],
      [
        'Anthropic, of a model unknown to its package',
        () => anthropic('model-x'),
        (body) => fieldOf(body, 'max_tokens'),
      ],
      [
        'Anthropic, above the maximum of the model',
        () => anthropic('claude-3-haiku'),
        (body) => fieldOf(body, 'max_tokens'),
      ],
      ['Gemini', gemini, (body) => fieldOf(fieldOf(body, 'generationConfig'), 'maxOutputTokens')],
    ];
  for (const [title, open, sent] of wires) {
    for (const limit of [undefined, 50, 200_000]) {
      it(`is the one sent to ${title}, where the node has ${limit ?? 'none'}`, async () => {
        const reserved = await reservedLimits(await open(), limit);
        expect(reserved).to.deep.equal([limit ?? 8_192]);
        expect(sent(server.calls.at(-1)?.body)).to.equal(limit ?? 8_192);
      });
    }
  }

  it('is sent with a repeated request too, after a broken stream', async () => {
    const provider = await openAi(({ body }) => (body.stream === true ? resetsMidBody : says('A draft')));
    const reserved = await reservedLimits(provider, 300);
    expect(reserved).to.deep.equal([300, 300]);
    expect(server.calls.map(({ body }) => fieldOf(body, 'max_tokens'))).to.deep.equal([300, 300]);
  });
});

/** The texts of a request of any wire. */
function textsIn(body: unknown): readonly string[] {
  const texts: string[] = [];
  JSON.stringify(body, (key, value: unknown) => {
    if ((key === 'content' || key === 'text') && typeof value === 'string') texts.push(value);
    return value;
  });
  return texts;
}
