import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { startChild } from '../support/child.js';
import { instantModel } from '../support/instant-model.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import type { WebhookCrash } from '../support/webhook-child.js';
import type { Received, Receiver } from '../support/webhook-receiver.js';
import { answers, startReceiver } from '../support/webhook-receiver.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const CHILD = fileURLToPath(new URL('../support/webhook-child.js', import.meta.url));
const RUNS = 3;
const TYPES = ['RunStarted', 'NodeCompleted', 'RunCompleted'];

/** All crash points of the first deliveries in a soak, otherwise some. The first record is the claim. */
const every = (...some: readonly number[]): readonly number[] => (IS_SOAK ? [0, 1, 2, 3, 4, 5, 6, 7, 8] : some);
const POINTS: readonly (readonly [WebhookCrash['boundary'], readonly number[]])[] = [
  ['send', every(3)],
  ['append unsent', every(2)],
  ['append sent', every()],
  ['append durable', every()],
];

describe('A crash of the service that delivers to a webhook', () => {
  let receiver: Receiver;

  beforeEach(async () => {
    receiver = await startReceiver();
  });
  afterEach(() => receiver.stop());

  for (const [boundary, ordinals] of POINTS) {
    for (const ordinal of ordinals) {
      it(`loses no event and keeps the order of each run: at "${boundary}" ${ordinal}`, async () => {
        await survive({ boundary, ordinal });
      });
    }
  }

  for (const isAnswered of [false, true]) {
    soakIt(`loses no event ${isAnswered ? 'after' : 'before'} the receiver has answered`, async () => {
      let kill = (): void => undefined;
      receiver.answerBy((response) => {
        const isFourth = receiver.received.length === 4;
        if (isFourth && !isAnswered) return kill();
        response.writeHead(204).end(() => {
          if (isFourth) kill();
        });
      });
      await survive({ boundary: null, ordinal: 0 }, (stop) => (kill = stop));
    });
  }

  /** Starts runs and a webhook in a process that dies, then a service on the same folder that delivers the rest. */
  async function survive(
    crash: Pick<WebhookCrash, 'boundary' | 'ordinal'>,
    onStarted: (kill: () => void) => void = () => undefined,
  ): Promise<void> {
    const dir = tempDir();
    const child = startChild(process.execPath, [CHILD, JSON.stringify({ ...crash, path: dir.path })]);
    onStarted(() => void child.kill());
    await untilTrue(() => Promise.resolve(child.lines.length > 0));
    const dying = restClient(child.lines[0] ?? '');
    const body = { url: receiver.url, types: TYPES };
    // It may die before it answers.
    await dying.post('/api/webhooks', body).catch(() => undefined);
    const runIds: string[] = [];
    for (let run = 0; run < RUNS; run += 1) runIds.push(await dying.start().catch(() => ''));
    expect((await child.exit).signal).to.equal('SIGKILL');
    receiver.answerBy(answers(204));

    const service = await startService({ dataDir: dir.path, model: instantModel(), webhookAllowPrivate: true });
    const rest = restClient(service.url);
    const started = runIds.filter((runId) => runId !== '');
    while (started.length < RUNS) started.push(await rest.start());
    for (const runId of started) {
      await rest.until(runId, ({ status }) => status === 'completed');
      const events = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json').events;
      const wanted = events.filter(({ type }) => TYPES.includes(type)).map(({ seq }) => seq);
      await receiver.until((all) => new Set(seqsOf(all, runId)).size === wanted.length);
      const got = seqsOf(receiver.received, runId);
      expect([...new Set(got)]).to.deep.equal(wanted);
      // A repeated delivery follows itself.
      expect(got).to.deep.equal(got.toSorted((one, other) => one - other));
    }
    const list = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
    expect(list).to.have.length(1);
    await service.stop();
    dir.remove();
  }
});

function seqsOf(received: readonly Received[], runId: string): readonly number[] {
  return received.filter(({ message }) => message.data.run_id === runId).map(({ message }) => message.data.seq);
}
