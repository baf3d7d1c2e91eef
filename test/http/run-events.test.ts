import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { RunEventsPage } from '../../src/generated/schemas.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import type { LanguageModel } from '../../src/models/port.js';
import { changedLog } from '../support/changed-log.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

describe('GET /api/runs/{run_id}/events', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;
  let all: RunEventsPage['events'];

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([8])) });
    rest = restClient(service.url);
    runId = await rest.start();
    await rest.until(runId, isOver);
    all = (await page('')).events;
  });
  after(() => service.stop());

  const page = async (query: string): Promise<RunEventsPage> =>
    rest.read(await rest.get(`/api/runs/${runId}/events${query}`), 200, 'run-events-page.json');

  it('returns all events in order', async () => {
    const { run_id: id, events, next } = await page('');
    expect(id).to.equal(runId);
    expect(next).to.equal(null);
    expect(events.map(({ seq }) => seq)).to.deep.equal(events.map((_, index) => index));
    expect(events[0]?.type).to.equal('RunRequested');
    expect(events.at(-1)?.type).to.equal('RunCompleted');
  });

  it('returns everything that a client needs to verify the chain', () => {
    let previous = '0'.repeat(64);
    for (const { seq, id, type, at, data, hash } of all) {
      const text = previous + canonical({ at, data, id, seq, type });
      expect(createHash('sha256').update(text, 'utf8').digest('hex')).to.equal(hash);
      previous = hash;
    }
  });

  it('pages with from and limit, and returns the next position', async () => {
    const two = await page('?limit=2');
    expect(two).to.deep.equal({ run_id: runId, events: all.slice(0, 2), next: 2 });
    expect(await page('?from=2&limit=1')).to.deep.equal({ run_id: runId, events: all.slice(2, 3), next: 3 });
    const last = all.length - 1;
    expect(await page(`?from=${last}&limit=1`)).to.deep.equal({ run_id: runId, events: all.slice(last), next: null });
    expect((await page(`?limit=${all.length}`)).next).to.equal(null);
    expect((await page(`?limit=${last}`)).next).to.equal(last);
  });

  it('returns no events after the head', async () => {
    for (const from of [all.length, all.length + 5, Number.MAX_SAFE_INTEGER]) {
      expect(await page(`?from=${from}`)).to.deep.equal({ run_id: runId, events: [], next: null });
    }
  });

  for (const query of ['from=-1', 'from=0&from=0', 'limit=0', 'limit=1001']) {
    it(`refuses ${query} with 422, also of an unknown run`, async () => {
      const { errors } = rest.problem(await rest.get(`/api/runs/${runId}/events?${query}`), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['query', query.split('=')[0]]);
      rest.problem(await rest.get(`/api/runs/${NO_RUN}/events?${query}`), 422);
    });
  }

  it('accepts the largest limit', async () => {
    expect((await page('?limit=1000')).events).to.deep.equal(all);
  });

  it('answers 404 naming the id of an unknown run, from any position', async () => {
    for (const query of ['', '?from=3']) {
      expect(rest.problem(await rest.get(`/api/runs/${NO_RUN}/events${query}`), 404).detail).to.include(NO_RUN);
    }
  });

  const asLines = (headers: Record<string, string> = {}, query = '') =>
    rest.send('GET', `/api/runs/${runId}/events${query}`, { headers: { Accept: 'application/x-ndjson', ...headers } });

  it('exports all events, one per line, with Accept: application/x-ndjson', async () => {
    for (const query of ['', '?from=3&limit=1']) {
      const reply = await asLines({}, query);
      expect(reply.status).to.equal(200);
      expect(reply.headers.get('Content-Type')).to.equal('application/x-ndjson');
      expect(reply.text).to.equal(all.map((event) => `${canonical(event)}\n`).join(''));
    }
    rest.problem(await asLines({}, '?limit=0'), 422);
    const other = await rest.send('GET', `/api/runs/${NO_RUN}/events`, { headers: { Accept: 'application/x-ndjson' } });
    expect(rest.problem(other, 404).detail).to.include(NO_RUN);
  });

  it('returns JSON to clients that accept both, or neither', async () => {
    const [any, both] = ['*/*', 'application/x-ndjson;q=0.5, application/json'];
    for (const accept of [any, both, 'text/html']) {
      const reply = await rest.send('GET', `/api/runs/${runId}/events`, { headers: { Accept: accept } });
      expect(rest.read(reply, 200, 'run-events-page.json').events, accept).to.deep.equal(all);
    }
  });

  it('has the revision of the head as its ETag, for every page and format', async () => {
    const tag = `"${all.length - 1}"`;
    const pages = [await rest.get(`/api/runs/${runId}/events?limit=1`), await asLines()];
    for (const { headers } of pages) expect(headers.get('ETag')).to.equal(tag);
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const plain = await rest.send('GET', `/api/runs/${runId}/events`, { headers: { 'If-None-Match': known } });
      for (const reply of [plain, await asLines({ 'If-None-Match': known })]) {
        expect(reply, known).to.include({ status: 304, text: '' });
        expect(reply.headers.get('ETag')).to.equal(tag);
      }
    }
    for (const other of ['"0"', 'x', all.length - 1]) {
      expect((await asLines({ 'If-None-Match': String(other) })).status, String(other)).to.equal(200);
    }
    rest.problem(await rest.send('GET', `/api/runs/${NO_RUN}/events`, { headers: { 'If-None-Match': '*' } }), 404);
  });
});

describe('GET /api/runs/{run_id}/events of a long record', () => {
  it('stops reading the log if the client does not read the answer', async () => {
    let open = 0;
    const counted = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      open += 1;
      try {
        yield* events;
      } finally {
        open -= 1;
      }
    };
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, { readStream: (stream, range) => counted(log.readStream(stream, range)) });
    const usage = { inputTokens: 1, outputTokens: 1 };
    const model: LanguageModel = {
      provider: 'long',
      defaultModel: 'long',
      ask: () => Promise.resolve({ text: 'x'.repeat(100_000), usage }),
    };
    const service = await startService({ model, decorate });
    try {
      const rest = restClient(service.url);
      const nodes = Array.from({ length: 15 }, (_, index) => ({ id: `n${index}` }));
      const edges = nodes.slice(1).map(({ id }, index) => ({ source: `n${index}`, target: id }));
      expect((await rest.post('/api/councils/', { id: 'long', name: 'Long', nodes, edges })).status).to.equal(201);
      const { run_id: runId } = rest.read(
        await rest.post('/api/councils/long/run', { input_topic: 'A long one' }),
        202,
        'run-start.json',
      );
      await rest.until(runId, isOver);
      const path = `/api/runs/${runId}/events`;
      for (const headers of [{}, { Accept: 'application/x-ndjson' }]) {
        expect((await rest.send('HEAD', path, { headers })).status).to.equal(200);
        const left = new AbortController();
        const { body } = await fetch(service.url + path, { headers, signal: left.signal });
        await body?.getReader().read();
        left.abort();
      }
      await untilTrue(() => open === 0);
    } finally {
      await service.stop();
    }
  });
});
