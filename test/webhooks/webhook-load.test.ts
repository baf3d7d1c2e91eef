import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { nodeSystem } from '../../src/system/system.js';
import { wait } from '../../src/system/async/deadline.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;
/** Of every 20 webhooks one hangs, one answers 500, and both get the events of all runs; the others those of one blueprint. */
const [WEBHOOKS, BLUEPRINTS, SECONDS] = IS_SOAK ? [1_000, 100, 60] : [40, 4, 1];
/** A run has 12 events: 10,000 a minute. */
const RUNS_A_SECOND = 14;
/** The most bytes that the service may hold for one webhook that is 100 deliveries behind, and for all else. */
const MAX_BYTES_A_WEBHOOK = 100_000;
const MAX_BYTES = 40_000_000;

/** What a receiver gets, by path. */
interface LoadReceiver {
  readonly url: string;
  readonly delivered: () => number;
  readonly delays: number[];
  stop(): void;
}

describe(`${WEBHOOKS} webhooks`, () => {
  let dir: TempDir;
  let service: ServiceProcess;
  let rest: RestClient;
  let receiver: LoadReceiver;

  before(async () => {
    dir = tempDir();
    receiver = await loadReceiver();
    service = await startServiceProcess(dir.path, {
      flags: ['--expose-gc', '--import', PROBE],
      environment: { WEBHOOK_ALLOW_PRIVATE: 'on', LOG_LEVEL: 'error' },
    });
    rest = restClient(service.url);
  });
  after(async () => {
    await service.stop();
    receiver.stop();
    dir.remove();
  });

  it('take little memory at 10,000 events a minute while some hang and some fail', async () => {
    for (let index = 0; index < BLUEPRINTS; index += 1) await saveBlueprint(index);
    await runAt(1);
    const before = await heldBytes();
    const loaded = new AbortController();
    for (let index = 0; index < WEBHOOKS; index += 1) await register(index);
    const measuring = (async () => {
      let most = 0;
      while (!loaded.signal.aborted) {
        most = Math.max(most, await heldBytes());
        await pause(1_000);
      }
      return most;
    })();
    const started = performance.now();
    let wanted = 0;
    for (let second = 0; second < SECONDS; second += 1) {
      wanted += (await runAt(second)) * healthyOf(second % BLUEPRINTS);
      await pause(1_000 * (second + 1) - (performance.now() - started));
    }
    await untilTrue(() => receiver.delivered() >= wanted);
    loaded.abort();
    const most = (await measuring) - before;
    const delays = receiver.delays.sort((one, other) => one - other);
    const p99 = delays[Math.floor(delays.length * 0.99)] ?? 0;
    process.stderr.write(
      `      ${wanted} deliveries in ${Math.round((performance.now() - started) / 1000)} s, p99 after ${p99} ms; ` +
        `${Math.round(most / 1e6)} MB more than before\n`,
    );
    expect(receiver.delivered()).to.equal(wanted);
    expect(most).to.be.below(MAX_BYTES + MAX_BYTES_A_WEBHOOK * WEBHOOKS);
  });

  if (IS_SOAK) {
    it('take little memory at 10,000 events a minute while all of them fail, and runs go on', async () => {
      const all = rest.read(await rest.get('/api/webhooks'), 200, 'webhook-list.json');
      for (const { id } of all) expect((await rest.send('DELETE', `/api/webhooks/${id}`)).status).to.equal(204);
      const before = await heldBytes();
      for (let index = 0; index < WEBHOOKS; index += 1)
        expect((await rest.post('/api/webhooks', { url: 'http://127.0.0.1:9' })).status).to.equal(201);
      const started = performance.now();
      let most = 0;
      const latencies: number[] = [];
      for (let second = 0; second < SECONDS; second += 1) {
        const at = performance.now();
        await runAt(second);
        const runId = await rest.start();
        await rest.until(runId, ({ status }) => status === 'completed');
        latencies.push(Math.round(performance.now() - at));
        most = Math.max(most, await heldBytes());
        await pause(1_000 * (second + 1) - (performance.now() - started));
      }
      latencies.sort((one, other) => one - other);
      process.stderr.write(
        `      ${Math.round((most - before) / 1e6)} MB more than before; ${RUNS_A_SECOND} starts and a run take ` +
          `${latencies[Math.floor(latencies.length / 2)] ?? 0} ms, at most ${latencies.at(-1) ?? 0} ms; ` +
          `${Math.round((performance.now() - started) / 1000)} s\n`,
      );
      expect(most - before).to.be.below(MAX_BYTES + MAX_BYTES_A_WEBHOOK * WEBHOOKS);
    });
  }

  const kindOf = (index: number): 'hang' | 'fail' | 'take' =>
    index % 20 === 0 ? 'hang' : index % 20 === 1 ? 'fail' : 'take';
  const healthyOf = (blueprint: number): number =>
    Array.from({ length: WEBHOOKS }, (_, index) => index).filter(
      (index) => kindOf(index) === 'take' && index % BLUEPRINTS === blueprint,
    ).length;

  async function saveBlueprint(index: number): Promise<void> {
    const nodes = [{ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' }];
    const edges = [
      { source: 'a', target: 'b' },
      { source: 'b', target: 'c' },
      { source: 'c', target: 'd' },
    ];
    const reply = await rest.post('/api/councils/', { id: `b${index}`, name: `B ${index}`, nodes, edges });
    expect(reply.status).to.equal(201);
  }

  async function register(index: number): Promise<void> {
    const kind = kindOf(index);
    const blueprint = kind === 'take' ? { blueprint_id: `b${index % BLUEPRINTS}` } : {};
    expect((await rest.post('/api/webhooks', { url: `${receiver.url}/${kind}`, ...blueprint })).status).to.equal(201);
  }

  /** Starts the runs of one second, all of one blueprint. Returns how many. */
  async function runAt(second: number): Promise<number> {
    const path = `/api/councils/b${second % BLUEPRINTS}/run`;
    const starting = Array.from({ length: RUNS_A_SECOND }, () => rest.post(path, { input_topic: 'Trees' }));
    for (const { status } of await Promise.all(starting)) expect(status).to.equal(202);
    return RUNS_A_SECOND;
  }

  /** Bytes that the service holds after a collection. */
  async function heldBytes(): Promise<number> {
    service.child.send('memory');
    const [bytes] = (await once(service.child, 'message')) as readonly unknown[];
    return Number(bytes);
  }
});

function pause(ms: number): Promise<void> {
  return wait(nodeSystem(), Math.max(0, ms), new AbortController().signal);
}

async function loadReceiver(): Promise<LoadReceiver> {
  let delivered = 0;
  const delays: number[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', () => undefined)
      .on('end', () => {
        if (request.url === '/hang') return;
        if (request.url === '/fail') return void response.writeHead(500).end();
        delivered += 1;
        delays.push(Date.now() - Date.parse(timestampIn(Buffer.concat(chunks).toString())));
        response.writeHead(204).end();
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    delivered: () => delivered,
    delays,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The time of the event in a body. */
function timestampIn(body: string): string {
  return (JSON.parse(body) as { readonly timestamp: string }).timestamp;
}
