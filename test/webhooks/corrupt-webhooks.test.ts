import { expect } from 'chai';
import { LogCorrupt } from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { changedLog } from '../support/changed-log.js';
import { changeLog } from '../support/damaged-log.js';
import { instantModel } from '../support/instant-model.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import type { Receiver } from '../support/webhook-receiver.js';
import { startReceiver } from '../support/webhook-receiver.js';
import { sample } from '../support/soak.js';

const NAMES = ['one', 'two', 'three'] as const;

onEmbeddedLog(() => {
  describe('A corrupt record of webhooks', () => {
    let dir: TempDir;
    let receiver: Receiver;
    let service: RunningService;
    let rest: RestClient;
    /** Ids of the webhooks, by name. */
    let ids: Record<(typeof NAMES)[number], string>;

    const serve = async (decorate: (log: EventLog) => EventLog = (log) => log): Promise<void> => {
      const settings = { dataDir: dir.path, model: instantModel(), webhookAllowPrivate: true, eventStore: null };
      service = await startService({ ...settings, decorate });
      rest = restClient(service.url);
    };
    const register = async (name: string): Promise<string> => {
      const reply = await rest.post('/api/webhooks', { url: `${receiver.url}/${name}` });
      return rest.read(reply, 201, 'new-webhook.json').id;
    };
    const listed = async (): Promise<readonly string[]> => {
      const list = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
      return list.map(({ url }) => new URL(url).pathname.slice(1));
    };
    /** Expects that these webhooks deliver the next run. */
    const expectDelivers = async (...names: readonly string[]): Promise<void> => {
      const runId = await rest.start();
      const of = (name: string) => receiver.received.filter(({ path }) => path === `/${name}`);
      for (const name of names)
        await receiver.until(() => of(name).some(({ message }) => message.data.run_id === runId));
    };

    beforeEach(async () => {
      dir = tempDir();
      receiver = await startReceiver();
      await serve();
      ids = { one: await register('one'), two: await register('two'), three: await register('three') };
    });
    afterEach(async () => {
      await service.stop();
      await receiver.stop();
      dir.remove();
    });

    /** Corrupts records of a stream while the service is stopped. */
    const corrupt = async (stream: string, change: string): Promise<void> => {
      await service.stop();
      changeLog(dir.path, `UPDATE events SET ${change} AND stream = (SELECT id FROM streams WHERE name = '${stream}')`);
      await serve();
    };
    /** Streams in the logged errors. */
    const reported = (): readonly unknown[] => service.faults.map((fault) => fieldOf(fault, 'stream'));

    const changes = [
      ['is no JSON', "data = '{' WHERE revision = 1"],
      ['has another type', "type = 'Nonsense' WHERE revision = 1"],
      ['has other data', "data = '{}' WHERE revision = 1"],
    ] as const;
    for (const [what, change] of sample(changes, 1)) {
      it(`in their list hides only the webhook that it names, if it ${what}`, async () => {
        await corrupt('webhook-all', change);
        expect(await listed()).to.deep.equal(['one', 'three']);
        expect(reported()).to.deep.equal(['webhook-all']);
        await expectDelivers('one', 'three');
        await register('four');
        expect((await rest.send('DELETE', `/api/webhooks/${ids.one}`)).status).to.equal(204);
        await service.stop();
        await serve();
        expect(await listed()).to.deep.equal(['three', 'four']);
        await expectDelivers('three', 'four');
      });
    }

    it('in their list hides no webhook if only its hash is corrupt', async () => {
      await corrupt('webhook-all', 'metadata = replace(metadata, \'"hash":"\', \'"hash":"00\') WHERE revision = 1');
      expect(await listed()).to.deep.equal([...NAMES]);
      expect(reported()).to.deep.equal(['webhook-all', 'webhook-all']);
      await expectDelivers(...NAMES);
    });

    it('hides only its webhook if it is the registration, and answers about this webhook say why', async () => {
      await corrupt(`webhook-${ids.two}`, "data = '{}' WHERE revision = 0");
      expect(await listed()).to.deep.equal(['one', 'three']);
      expect(reported()).to.deep.equal([`webhook-${ids.two}`]);
      for (const path of ['/deliveries', '/rotate']) {
        const reply = await rest.send(path === '/rotate' ? 'POST' : 'GET', `/api/webhooks/${ids.two}${path}`);
        expect(rest.problem(reply, 500).detail).to.include('The record of this webhook is damaged');
      }
      await expectDelivers('one', 'three');
    });

    it('stops only its webhook if it is of the deliveries, and answers about these say why', async () => {
      await corrupt(`delivery-${ids.two}`, "type = 'Nonsense' WHERE revision = 0");
      expect(await listed()).to.deep.equal([...NAMES]);
      const { detail } = rest.problem(await rest.get(`/api/webhooks/${ids.two}/deliveries`), 500);
      expect(detail).to.include('The record of this webhook is damaged');
      await expectDelivers('one', 'three');
      expect(reported().filter((stream) => stream === `delivery-${ids.two}`)).to.have.length(1);
    });

    for (const kind of ['webhook', 'delivery'] as const) {
      it(`stops only its webhook if a page of the stream "${kind}-…" is corrupt`, async () => {
        await service.stop();
        await serve((log) => unreadable(log, `${kind}-${ids.two}`));
        expect(await listed()).to.deep.equal(kind === 'webhook' ? ['one', 'three'] : [...NAMES]);
        rest.problem(await rest.get(`/api/webhooks/${ids.two}/deliveries`), 500);
        await expectDelivers('one', 'three');
        expect(reported().filter((stream) => stream === `${kind}-${ids.two}`)).to.have.length(1);
      });
    }

    it('stops no webhook and repeats no delivery if it is that of the last delivered run', async () => {
      const first = await rest.start();
      await receiver.until((all) => all.length === NAMES.length);
      for (const id of Object.values(ids)) {
        await untilTrue(async () => {
          const list = await rest.get(`/api/webhooks/${id}/deliveries`);
          return rest.read(list, 200, 'webhook-delivery-list.json').some(({ status }) => status === 'delivered');
        });
      }
      await service.stop();
      await serve((log) => unreadable(log, `run-${first}`));
      await expectDelivers(...NAMES);
      expect(receiver.received).to.have.length(2 * NAMES.length);
      expect(service.faults.filter((fault) => 'webhookId' in fault)).to.deep.equal([]);
    });

    it('hides later webhooks if it is a page of their list, and the service delivers to the earlier ones', async () => {
      await service.stop();
      await serve((log) => unreadable(log, 'webhook-all', 2));
      await expectDelivers('one', 'two');
      expect(reported()).to.include('webhook-all');
      rest.problem(await rest.post('/api/webhooks', { url: receiver.url }), 500);
    });
  });
});

/** A log that reads no event of a stream from a revision on, as a corrupt page of its file makes it. */
function unreadable(log: EventLog, unread: string, from = 0): EventLog {
  return changedLog(log, {
    async *readStream(stream, range) {
      for await (const event of log.readStream(stream, range)) {
        if (stream === unread && event.revision >= from) throw new LogCorrupt({ file: 'log.sqlite', reason: 'test' });
        yield event;
      }
    },
  });
}
