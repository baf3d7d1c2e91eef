import { expect } from 'chai';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import type { InterruptibleLog } from '../support/interruptible-log.js';
import { interruptibleLog } from '../support/interruptible-log.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

/**
 * More reads than any answer needs before it begins. The tests make the log unreachable after each number of reads up
 * to this.
 */
const MOST_READS = 12;

describe('A service whose log becomes unreachable while a client opens a stream', () => {
  let service: RunningService;
  let log: InterruptibleLog;
  const runs: Record<string, string> = {};

  before(async () => {
    log = interruptibleLog();
    // The model never answers the calls of one run, and answers all others at once.
    const model = scriptedModel(({ prompt }) =>
      prompt.includes('held') ? 'hold' : { text: '{"score": 9, "feedback": "fine"}' },
    );
    service = await startService({ decorate: log.decorate, model });
    const rest = restClient(service.url);
    runs['live'] = await rest.start('held');
    runs['finished'] = await rest.start('short');
    await rest.until(runs['finished'], isOver);
    runs['paused'] = await startGodRun(service.context, graphOf('one -> two'));
    await pausedBefore(service.context, runs['paused'], 'one');
  });
  afterEach(() => log.recover());
  after(() => service.stop());

  for (const which of ['live', 'finished', 'paused']) {
    for (const query of ['', '?events=all']) {
      it(`closes the socket${query} of a ${which} run with 1013, before any message`, async () => {
        for (let reads = 0; reads <= MOST_READS; reads += 1) {
          log.failAfter(reads);
          const channel = openChannel(service.url, `/ws/council/${runs[which]}${query}`);
          const first = await Promise.race([channel.closed, channel.until(() => true).catch(() => channel.closed)]);
          if (typeof first !== 'number') {
            channel.socket.terminate();
            expect(reads, 'reads before the first message').to.be.greaterThan(0);
            return;
          }
          expect(first).to.equal(1013);
          expect(channel.messages).to.deep.equal([]);
        }
        throw new Error('The socket never said anything');
      });
    }

    it(`answers the event stream of a ${which} run with 503 and Retry-After, never with an empty 200`, async () => {
      for (let reads = 0; reads <= MOST_READS; reads += 1) {
        log.failAfter(reads);
        const stream = openEventStream(service.url, `/api/runs/${runs[which]}/stream`);
        const { status, headers } = await stream.answered;
        if (status === 200) {
          await stream.until(() => true);
          stream.leave();
          expect(reads, 'reads before the answer').to.be.greaterThan(0);
          return;
        }
        expect(status).to.equal(503);
        expect(Number(headers['retry-after'])).to.be.greaterThan(0);
        expect(await stream.over).to.equal('ended');
      }
      throw new Error('The stream was never answered with 200');
    });

    it(`answers the export of a ${which} run with 503 or completely`, async () => {
      const ask = async (): Promise<{ readonly status: number; readonly text: string }> => {
        const reply = await fetch(`${service.url}/api/runs/${runs[which]}/events`, {
          headers: { Accept: 'application/x-ndjson' },
        });
        return { status: reply.status, text: await reply.text() };
      };
      const whole = await ask();
      expect(whole.status).to.equal(200);
      const statuses: number[] = [];
      for (let reads = 0; reads <= MOST_READS; reads += 1) {
        log.failAfter(reads);
        const reply = await ask();
        statuses.push(reply.status);
        if (reply.status !== 503) expect(reply).to.deep.equal(whole);
      }
      expect(statuses[0]).to.equal(503);
      expect(statuses.at(-1)).to.equal(200);
    });
  }

  it('answers 503, not an empty stream, to a client that has all events of a live run', async () => {
    const head = (await restClient(service.url).get(`/api/runs/${runs['live']}/events`)).headers.get('ETag') ?? '';
    const after = head.replaceAll('"', '');
    log.failAfter(0);
    const stream = openEventStream(service.url, `/api/runs/${runs['live']}/stream`, { 'Last-Event-ID': after });
    expect((await stream.answered).status).to.equal(503);
    log.recover();
    const again = openEventStream(service.url, `/api/runs/${runs['live']}/stream`, { 'Last-Event-ID': after });
    expect((await again.answered).status).to.equal(200);
    again.leave();
  });

  for (const path of ['/api/feed', '/api/feed?from=head', '/api/approvals/stream', '/api/approvals/stream?from=head']) {
    it(`answers ${path} with 503 and Retry-After, or with what it has read`, async () => {
      let isAnswered = false;
      for (let reads = 0; reads <= MOST_READS && !isAnswered; reads += 1) {
        log.failAfter(reads);
        const stream = openEventStream(service.url, path);
        const { status, headers } = await stream.answered;
        isAnswered = status === 200;
        if (isAnswered) {
          expect(reads, 'reads before the answer').to.be.greaterThan(0);
          log.recover();
          if (!path.includes('head')) await stream.until(() => true);
          stream.leave();
        } else {
          expect(status).to.equal(503);
          expect(Number(headers['retry-after'])).to.be.greaterThan(0);
          expect(await stream.over).to.equal('ended');
        }
      }
      expect(isAnswered).to.equal(true);
    });
  }
});
