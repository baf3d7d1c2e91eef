import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LanguageModel } from '../../src/models/port.js';
import { openChannel } from '../support/channel-client.js';
import type { CuttingProxy } from '../support/cutting-proxy.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import { openEventStream } from '../support/event-stream-client.js';
import { instantModel } from '../support/instant-model.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
const CONNECTIONS = IS_SOAK ? 1_000 : 60;
/** The number of concurrent clients of each run. */
const FOLLOWERS = 6;
/** The most bytes of an answer before a cut; the complete record of a run is about twice as long. */
const MAX_PIECE_BYTES = 8_000;

interface Piece {
  readonly events: readonly { readonly seq: number }[];
  /** Whether the service has sent the end of the stream. */
  readonly isLast: boolean;
}

describe(`A run's stream over connections that break (SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let service: RunningService;
  let rest: RestClient;
  let proxy: CuttingProxy;

  before(async () => {
    service = await startService({ model: hesitant(instantModel(), random) });
    rest = restClient(service.url);
    proxy = await openCuttingProxy(service.url, () => 1 + Math.floor(random() * MAX_PIECE_BYTES));
  });
  after(async () => {
    await proxy.close();
    await service.stop();
  });

  it(`yields exactly the exported events, over ${CONNECTIONS} sockets and event streams`, async () => {
    let runs = 0;
    for (; proxy.connections < CONNECTIONS; runs += 1) {
      const runId = await rest.start(`Topic ${runs}`);
      const joined = await Promise.all(Array.from({ length: FOLLOWERS }, () => joinedStream(runId)));
      const page = await rest.get(`/api/runs/${runId}/events?limit=1000`);
      const { events } = rest.read(page, 200, 'run-events-page.json');
      expect(events.at(-1)).to.have.property('type', 'RunCompleted');
      for (const each of joined) expect(each).to.deep.equal(events);
    }
    expect(proxy.cuts).to.be.greaterThan(CONNECTIONS / 2);
    expect(service.faults).to.deep.equal([]);
  });

  /** Follows a run to its end, and reconnects after every cut. */
  async function joinedStream(runId: string): Promise<readonly unknown[]> {
    const joined: { readonly seq: number }[] = [];
    for (let isOver = false; !isOver;) {
      const known = joined.at(-1)?.seq ?? -1;
      const part = await (random() < 0.5 ? overSocket(runId, known) : overEventStream(runId, known));
      joined.push(...part.events);
      isOver = part.isLast;
    }
    return joined;
  }

  async function overSocket(runId: string, known: number): Promise<Piece> {
    const channel = openChannel(proxy.url, `/ws/council/${runId}?events=all&from=${known}`);
    const code = await channel.closed;
    const told = channel.messages.filter(({ event }) => event === 'run_event');
    const events = told.map(({ seq, id, type, at, data, hash }) => ({ seq: Number(seq), id, type, at, data, hash }));
    return { events, isLast: code === 1000 };
  }

  async function overEventStream(runId: string, known: number): Promise<Piece> {
    const headers = known < 0 ? {} : { 'Last-Event-ID': String(known) };
    const stream = openEventStream(proxy.url, `/api/runs/${runId}/stream`, headers);
    const how = await stream.over;
    const events = stream.events.map(({ data }) => JSON.parse(data) as { readonly seq: number });
    return { events, isLast: how === 'ended' };
  }
});

/** A model that answers after some turns of the event loop, so that a client receives recorded and live events. */
function hesitant(model: LanguageModel, random: () => number): LanguageModel {
  return {
    ...model,
    async ask(request, call) {
      for (let turns = random() * 200; turns > 0; turns -= 1) await nextTurn();
      return await model.ask(request, call);
    },
  };
}
