import { expect } from 'chai';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { EventStreamClient } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, corruptRecord, startGodRun } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';
import { untilTrue } from '../support/until-true.js';

describe('GET /api/runs/{run_id}/stream', () => {
  let service: RunningService;
  let rest: RestClient;

  const house = sharedService();
  const serve = async (model: LanguageModel): Promise<void> => {
    service = await house.serve(model);
    rest = restClient(service.url);
  };
  const serveAlone = async (model: LanguageModel, system: System = nodeSystem()): Promise<void> => {
    service = await house.serveAlone(model, { system });
    rest = restClient(service.url);
  };
  const path = (runId: string, query = ''): string => `/api/runs/${runId}/stream${query}`;
  const follow = (runId: string, headers: Record<string, string> = {}, query = ''): EventStreamClient =>
    openEventStream(service.url, path(runId, query), headers);
  const finished = async (): Promise<string> => {
    const runId = await rest.start();
    await rest.until(runId, isOver);
    return runId;
  };
  const exported = async (runId: string) =>
    rest.read(await rest.get(`/api/runs/${runId}/events?limit=1000`), 200, 'run-events-page.json').events;
  const expectRecord = async (runId: string, { events }: EventStreamClient, after = -1): Promise<void> => {
    const record = (await exported(runId)).slice(after + 1);
    expect(events.map(({ data }): unknown => JSON.parse(data))).to.deep.equal(record);
    expect(events.map(({ id }) => id)).to.deep.equal(record.map(({ seq }) => String(seq)));
    expect(events.map(({ event }) => event)).to.deep.equal(record.map(({ type }) => type));
  };

  it('streams the events of a live run as they are exported, and ends after the last', async () => {
    const model = scriptedModel(() => 'hold');
    await serve(model);
    const runId = await rest.start();
    const stream = follow(runId);
    await stream.until(({ event }) => event === 'NodeStarted');
    const answers = ['Draft', '{"score": 9, "feedback": "fine"}', 'Final'];
    for (const [index, answer] of answers.entries()) {
      await model.called(index + 1);
      model.held[0]?.release(answer);
    }
    expect(await stream.over).to.equal('ended');
    await expectRecord(runId, stream);
    expect(stream.events.at(-1)?.event).to.equal('RunCompleted');
  });

  it('is sent as an event stream that is neither cached nor buffered', async () => {
    await serve(scriptedModel(() => 'hold'));
    const { status, headers } = await follow(await rest.start()).answered;
    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('text/event-stream; charset=utf-8');
    expect(headers['cache-control']).to.equal('no-store');
    expect(headers['x-accel-buffering']).to.equal('no');
  });

  it('resumes after any event, by Last-Event-ID or else from, and answers 204 after the last', async () => {
    await serve(scriptedModel(councilScript([6, 8])));
    const runId = await finished();
    const { length } = await exported(runId);
    for (let after = -1; after < length + 2; after += 1) {
      for (const stream of [
        follow(runId, { 'Last-Event-ID': String(after) }),
        follow(runId, {}, `?from=${after}`),
        follow(runId, { 'Last-Event-ID': String(after) }, '?from=0'),
      ]) {
        expect((await stream.answered).status).to.equal(after < length - 1 ? 200 : 204);
        expect(await stream.over).to.equal('ended');
        await expectRecord(runId, stream, after);
      }
    }
  });

  it('ends with the run also for a client whose cursor is after the last event', async () => {
    const model = scriptedModel(() => 'hold');
    await serve(model);
    const runId = await rest.start();
    const stream = follow(runId, { 'Last-Event-ID': '1000' });
    await stream.answered;
    await rest.post(`/api/councils/run/${runId}/cancel`);
    expect(await stream.over).to.equal('ended');
    expect(stream.events).to.deep.equal([]);
  });

  it('answers 404 to an unknown run, and 422 to an invalid cursor', async () => {
    await serve(scriptedModel());
    for (const id of [NO_RUN, 'run', '%00']) rest.problem(await rest.get(path(id)), 404);
    const runId = await finished();
    for (const id of ['x', '-2', '1.5', '9007199254740993']) {
      rest.problem(await rest.send('GET', path(runId), { headers: { 'Last-Event-ID': id } }), 422);
      rest.problem(await rest.get(path(runId, `?from=${id}`)), 422);
    }
    rest.problem(await rest.get(path(runId, '?from=1&from=2')), 422);
  });

  it('answers HEAD without a body and OPTIONS with its methods', async () => {
    await serve(scriptedModel(() => 'hold'));
    const runId = await rest.start();
    const head = await rest.send('HEAD', path(runId));
    expect([head.status, head.text]).to.deep.equal([200, '']);
    expect(head.headers.get('Content-Type')).to.equal('text/event-stream; charset=utf-8');
    await untilTrue(() => service.context.feed.size === 0);
    const options = await rest.send('OPTIONS', path(runId));
    expect([options.status, options.headers.get('Allow')]).to.deep.equal([204, 'GET, HEAD, OPTIONS']);
    rest.problem(await rest.post(path(runId)), 405);
  });

  it('breaks off at a corrupt event, and answers 500 for a corrupt record', async () => {
    await serveAlone(scriptedModel(councilScript([8])));
    const runId = await startGodRun(service.context, graphOf('one -> two'));
    await pausedBefore(service.context, runId, 'one');
    const stream = follow(runId);
    await stream.until(({ event }) => event === 'RunReleased');
    await corruptRecord(service.context, runId);
    expect(await stream.over).to.equal('cut');
    expect(stream.events.at(-1)?.event).to.equal('RunReleased');
    rest.problem(await rest.get(path(runId)), 500);
    expect(service.faults).not.to.deep.equal([]);
  });

  it('ends its subscription when the client disconnects', async () => {
    await serveAlone(scriptedModel(() => 'hold'));
    const stream = follow(await rest.start());
    await stream.until(({ event }) => event === 'NodeStarted');
    expect(service.context.feed.size).to.equal(1);
    stream.leave();
    await untilTrue(() => service.context.feed.size === 0);
  });

  it('ends when the service stops', async () => {
    await serveAlone(scriptedModel(() => 'hold'));
    const stream = follow(await rest.start());
    await stream.until(({ event }) => event === 'NodeStarted');
    await service.stop();
    expect(await stream.over).to.equal('ended');
    expect(service.faults).to.deep.equal([]);
  });
});
