import { expect } from 'chai';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Context } from '../../src/app/context.js';
import { openChannel } from '../support/channel-client.js';
import type { Described } from '../support/described-messages.js';
import { describedIn } from '../support/described-messages.js';
import { openEventStream } from '../support/event-stream-client.js';
import { graphOf } from '../support/given.js';
import { decision, pausedBefore, startGodRun } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { RandomSocket, SocketStory } from '../support/random-sockets.js';
import { playSocket, randomSockets } from '../support/random-sockets.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20261123);
const SOCKETS = Number(process.env['SOCKETS'] ?? (IS_SOAK ? 100_000 : 100));
/** Concurrent sockets. */
const CLIENTS = 8;
/** The documented close codes, and those of RFC 6455 for faulty frames of a client: 1002, 1005, 1007. */
const CODES = [1000, 1002, 1005, 1007, 1009];
/** Statuses that refuse an invalid handshake. */
const REFUSALS = [400, 403, 404, 405, 413, 417, 421, 422, 426, 431];
/** Frames other than texts and close: the service's pings, and its pongs. */
const PING_AND_PONG = [0x89, 0x8a];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe(`Random sockets (SEED=${SEED})`, () => {
  let service: RunningService;
  let context: Context;
  let expectDescribed: Described;

  before(async () => {
    service = await startService({ model: instantModel() });
    ({ context } = service);
    expectDescribed = describedIn(await (await fetch(`${service.url}/api/asyncapi.json`)).json());
  });
  after(() => service.stop());

  it(`get documented messages or refusals, and do not affect other clients, for ${SOCKETS} sockets`, async () => {
    const rest = restClient(service.url);
    const finished = await rest.start();
    await rest.until(finished, isOver);
    const runId = await startGodRun(context, graphOf('write'));
    await pausedBefore(context, runId, 'write');
    const beside = [openChannel(service.url, `/ws/council/${runId}`), openChannel(service.url, richPath(runId))];
    const stream = openEventStream(service.url, `/api/runs/${runId}/stream`);
    const heaps: number[] = [];
    const codes = new Map<number | null, number>();
    const statuses = new Map<number | null, number>();

    const next = randomSockets({ random: seededRandom(SEED), ids: [finished, runId, NO_RUN] });
    let left = SOCKETS;
    const client = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        // Collecting the garbage of earlier test files would take longer than this test.
        if (IS_SOAK && left % Math.ceil(SOCKETS / 10) === 0) heaps.push(heapMb());
        const socket = next();
        const story = await playSocket(service.url, socket);
        expectAllowed(socket, story);
        count(codes, story.code);
        count(statuses, story.status);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));

    await context.registry.decidePause(runId, decision('approve'));
    for (const each of beside) expect(await each.closed).to.equal(1000);
    await stream.over;
    const last = stream.events.at(-1);
    expect(stream.events.map(({ id }) => Number(id))).to.deep.equal(stream.events.map((_, seq) => seq));
    expect(last?.event).to.equal('RunCompleted');
    expect(beside[1]?.messages.filter(({ event }) => event === 'run_event')).to.have.length(stream.events.length);
    expect(service.faults).to.deep.equal([]);
    // Some sockets must succeed, and some must be refused.
    for (const code of [1000, 1002, 1009]) expect(codes.get(code), String(code)).to.be.above(SOCKETS / 200);
    for (const status of [101, 400, 404, 422]) expect(statuses.get(status), String(status)).to.be.above(SOCKETS / 200);
    if (!IS_SOAK) return;
    const told = JSON.stringify({ codes: [...codes], statuses: [...statuses] });
    console.log(`${SOCKETS} sockets, SEED=${SEED}: ${told}; heap in MB after each tenth: ${heaps.join(' ')}`);
    expect(heaps.at(-1)).to.be.below(20 + 1.5 * (heaps[1] ?? 0));
  });

  function expectAllowed(socket: RandomSocket, { status, body, texts, otherFrames, code }: SocketStory): void {
    const about = `${JSON.stringify(socket.handshake)}: ${status} ${body} ${code}`;
    const channel = new URLSearchParams(socket.path.split('?')[1]).getAll('events').includes('all')
      ? 'runInFull'
      : 'run';
    for (const text of texts) expectDescribed(channel, JSON.parse(text));
    for (const frame of otherFrames) expect(PING_AND_PONG, about).to.include(frame);
    if (code !== null) expect([...CODES, ...socket.codes], about).to.include(code);
    if (status === 101 || status === null) return;
    expect(REFUSALS, about).to.include(status);
    if (!socket.handshake.startsWith('HEAD')) expect(JSON.parse(body), about).to.have.property('detail');
  }
});

const richPath = (runId: string): string => `/ws/council/${runId}?events=all`;

function count(counts: Map<number | null, number>, of: number | null): void {
  counts.set(of, (counts.get(of) ?? 0) + 1);
}

/** The reachable memory of the clients and the service. */
function heapMb(): number {
  collectGarbage();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}
