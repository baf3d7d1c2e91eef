import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { readConfig } from '../../src/config.js';
import { nodeSystem } from '../../src/system/system.js';
import { heldModel } from '../support/instant-model.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const STARTS = IS_SOAK ? 12_000 : 300;
/** Connections of the flood. */
const AT_ONCE = 300;
const MOST_A_MINUTE = IS_SOAK ? 11_000 : 200;
const MOST_ACTIVE = 20;
const MOST_PENDING = 10_000;
/** The number of runs that wait before the flood: ids only, of runs that another instance resumes later. */
const WAITING = IS_SOAK ? 0 : MOST_PENDING - 50;

describe('A flood of starts', () => {
  let service: RunningService;
  let rest: RestClient;
  let letGo = (): void => undefined;

  before(async () => {
    const held = new Promise<void>((resolve) => (letGo = resolve));
    // The quota is not refilled.
    const system = { ...nodeSystem(), monotonicMs: () => 0 };
    const { limits } = readConfig({ MAX_RUNS_PER_MINUTE: String(MOST_A_MINUTE), MAX_UNFINISHED_RUNS: '1000000' });
    service = await startService({ model: heldModel(held), system, limits, maxActiveRuns: MOST_ACTIVE });
    rest = restClient(service.url);
  });
  after(() => service.stop());

  const flood = async (): Promise<readonly Reply[]> => {
    const replies: Reply[] = [];
    let left = STARTS;
    const client = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        replies.push(await rest.post('/api/councils/run', { input_topic: 'Trees' }));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    return replies;
  };
  const counted = async (status: string): Promise<number> =>
    Number((await rest.get(`/api/runs/?count=1&limit=1&status=${status}`)).headers.get('Total-Count'));

  it('is accepted up to the limits: accepted runs complete, refused starts get Retry-After', async () => {
    const elsewhere = Array.from({ length: WAITING }, () => ({ runId: randomUUID() }));
    const placeholders = await Promise.all(Array.from({ length: MOST_ACTIVE }, () => rest.start()));
    service.context.registry.recover(elsewhere);
    const replies = await flood();

    const of = (status: number): readonly Reply[] => replies.filter((reply) => reply.status === status);
    const [accepted, crowded, limited] = [of(202), of(503), of(429)];
    const granted = MOST_A_MINUTE - placeholders.length;
    expect([accepted.length, crowded.length, limited.length]).to.deep.equal([
      MOST_PENDING - WAITING,
      granted - (MOST_PENDING - WAITING),
      STARTS - granted,
    ]);
    for (const reply of crowded) expect(rest.problem(reply, 503).detail).to.include('10000');
    for (const reply of limited) expect(rest.problem(reply, 429).detail).to.include('Too many runs started');
    for (const { headers } of [...crowded, ...limited]) expect(Number(headers.get('Retry-After'))).to.be.at.least(1);

    for (const { runId } of elsewhere) service.context.registry.dequeue(runId);
    letGo();
    const ids = accepted.map((reply) => rest.read(reply, 202, 'run-start.json').run_id);
    await untilTrue(async () => (await counted('completed')) >= ids.length + placeholders.length);
    for (const runId of ids.slice(0, 50)) expect((await rest.poll(runId)).status).to.equal('completed');
    const listed = await rest.get('/api/runs/?count=1&limit=1');
    expect(Number(listed.headers.get('Total-Count'))).to.equal(ids.length + placeholders.length);
    expect(service.faults).to.deep.equal([]);
  });
});
