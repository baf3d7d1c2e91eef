import { spent } from '../support/usage.js';
import { geminiModel } from '../support/provider-models.js';
import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem } from '../../src/system/system.js';
import type { RunEventsPage, RunFacts, RunResult } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { startChild } from '../support/child.js';
import type { FakeGemini } from '../support/fake-gemini.js';
import { councilOf, fakeGemini, hangs, isCritique, refuses } from '../support/fake-gemini.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService, ServiceOverrides } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';

const KEY = 'AIza-secret-key-of-this-test';
const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** Events as the endpoint shows them, with the data of their type. */
type Shown<T extends keyof RunFacts> = { readonly data: RunFacts[T] };

describe('A council on Gemini', () => {
  let server: FakeGemini;
  let service: RunningService | null;
  let rest: RestClient;

  /** The smallest jitter, so that the service waits only as long as a provider asks for. */
  const system = { ...nodeSystem(), random: () => 0 };
  const model = (): LanguageModel => geminiModel({ apiKey: KEY, baseUrl: server.url, model: 'gemini-x' });

  const serve = async (overrides: ServiceOverrides = {}): Promise<void> => {
    service = await startService({ model: model(), system, ...overrides });
    rest = restClient(service.url);
  };
  const runToItsEnd = async (topic?: string): Promise<RunResult> => rest.until(await rest.start(topic), isOver);
  const eventsOf = async (runId: string): Promise<RunEventsPage['events']> =>
    rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;

  beforeEach(async () => {
    server = await fakeGemini();
    service = null;
  });
  afterEach(async () => {
    await service?.stop();
    await server.stop();
  });

  it('runs to its end, drafts again below 8, and records model and usage', async () => {
    server.answerBy(councilOf([5, 9]));
    await serve();
    const run = await runToItsEnd();
    expect(run).to.include({ status: 'completed', critic_score: 9, iteration_count: 2, final_draft: 'Draft 3' });
    expect(server.calls.map(({ body }) => isCritique(body))).to.deep.equal([false, true, false, true, false]);
    const events = await eventsOf(run.run_id);
    const started = only(events, 'NodeStarted');
    expect(started.map(({ data }) => data.model)).to.deep.equal(Array.from({ length: 5 }, () => 'gemini-x'));
    for (const { data } of only(events, 'NodeCompleted')) {
      expect(data.usage).to.deep.equal(spent(11, 7));
    }
  });

  it('waits as long as Retry-After asks, and records both attempts', async () => {
    const council = councilOf([8]);
    server.answerBy((call, index) =>
      index === 0 ? refuses(429, { message: 'Slow down.', headers: { 'Retry-After': '1' } }) : council(call, index),
    );
    await serve();
    const run = await runToItsEnd();
    expect(run.status).to.equal('completed');
    const events = await eventsOf(run.run_id);
    const [failed] = only(events, 'NodeFailed');
    expect(failed?.data).to.include({ kind: 'rate_limited', attempt: 1, retryable: true });
    expect(failed?.data.message).to.include('answered 429').and.include('Slow down.');
    const [first, second] = only(events, 'NodeStarted');
    expect(first?.data).to.include({ attempt: 1, delayMs: 0 });
    expect(second?.data).to.include({ node: 'master_agent', step: first?.data.step, attempt: 2 });
    // What is left of the second when the failure has been recorded.
    expect(second?.data.delayMs).to.be.within(0, 1_000);
    const [before, after] = server.calls;
    // By another clock, a timer may fire a millisecond early.
    expect((after?.atMs ?? 0) - (before?.atMs ?? 0)).to.be.at.least(995);
  });

  it('fails after the last attempt when no answer comes in time', async () => {
    server.answerBy([hangs]);
    await serve({ modelTimeoutMs: 300, modelMaxAttempts: 3 });
    const run = await runToItsEnd();
    expect(run.status).to.equal('failed');
    const error = 'Node "master_agent": Cannot get an answer from model "gemini-x": none came within 300 ms';
    expect(run.error).to.equal(error);
    const failures = only(await eventsOf(run.run_id), 'NodeFailed');
    expect(failures.map(({ data }) => [data.kind, data.attempt])).to.deep.equal([
      ['timeout', 1],
      ['timeout', 2],
      ['timeout', 3],
    ]);
    await server.until(() => server.abandoned() === 3);
    expect(server.calls).to.have.length(3);
  });

  it('fails at once on a wrong key and names the setting to check', async () => {
    server.answerBy([refuses(401, { message: `${KEY} is wrong` })]);
    await serve();
    const run = await runToItsEnd();
    expect(run.status).to.equal('failed');
    expect(run.error).to.include('GEMINI_API_KEY').and.not.include(KEY);
    expect(server.calls).to.have.length(1);
  });

  it('that is cancelled ends its request on the server too', async () => {
    server.answerBy([hangs]);
    await serve();
    const runId = await rest.start();
    await server.until(() => server.calls.length === 1);
    const run = rest.read(await rest.post(`/api/councils/run/${runId}/cancel`), 200, 'run-result.json');
    expect(run).to.include({ status: 'failed', error: 'Cancelled by the user' });
    await server.until(() => server.abandoned() === 1);
    expect(server.calls).to.have.length(1);
  });

  it('that is set up by environment variables sends its key to Gemini and to no other server', async () => {
    const dir = tempDir();
    const child = startChild(process.execPath, [MAIN], {
      PORT: '0',
      DATA_DIR: dir.path,
      GEMINI_API_KEY: KEY,
      GEMINI_BASE_URL: `${server.url}/`,
      GEMINI_MODEL: 'gemini-z',
      MODEL_MAX_ATTEMPTS: '1',
      MODEL_OUTAGE_MS: '500',
      LOG_LEVEL: 'debug',
    });
    try {
      await child.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
      rest = restClient(child.lines.at(-1)?.replace('listening on ', '') ?? '');
      const completed = await runToItsEnd();
      expect(completed.status).to.equal('completed');
      expect(server.calls.every(({ headers }) => headers['x-goog-api-key'] === KEY)).to.equal(true);
      expect(server.calls[0]?.path).to.equal('/v1beta/models/gemini-z:generateContent');
      server.answerBy([refuses(503, { message: `No, ${KEY}.` })]);
      const failed = await runToItsEnd();
      expect(failed.status).to.equal('failed');
      child.signal('SIGTERM');
      expect(await child.ended).to.equal(0);
      const shown = [completed, failed].map((run) => JSON.stringify(run));
      expect([...child.lines, child.stderrText(), ...shown].join('\n')).not.to.include(KEY);
      for (const file of readdirSync(dir.path, { recursive: true, encoding: 'utf8' })) {
        if (/\.(?:sqlite|sqlite-wal|json)$/.test(file)) {
          expect(readFileSync(join(dir.path, file)).includes(KEY), file).to.equal(false);
        }
      }
    } finally {
      await child.kill();
      dir.remove();
    }
  });
});

function only<T extends keyof RunFacts>(events: RunEventsPage['events'], wanted: T): readonly Shown<T>[] {
  return events.filter(({ type }) => type === wanted).map(({ data }) => ({ data: data as RunFacts[T] }));
}
