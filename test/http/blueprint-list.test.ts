import { expect } from 'chai';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:http';
import { nodeSystem } from '../../src/system/system.js';
import type { Blueprint } from '../../src/generated/schemas.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { soakIt } from '../support/soak.js';

const COUNCILS = '/api/councils/';
/** More bytes than the buffers of a connection hold while its client reads nothing. */
const MANY = 80;
/** The interval of the checks whether a client takes anything. */
const CHECK_MS = 15_000;
/** The time limit of waits: of a list for its turn, and of every request for the log. */
const DEADLINE_MS = 10_000;

describe('A list of large blueprints', () => {
  let service: RunningService;
  let rest: RestClient;
  /** Sets the timer of a check, four of which disconnect a client that takes nothing. */
  let onStallTimer: (callback: () => void) => () => void;
  /** Whether requests wait without a time limit, because the machine may be busy. */
  let isPatient: boolean;
  let open: IncomingMessage[];

  before(async () => {
    const real = nodeSystem();
    const after: typeof real.after = (ms, callback) => {
      if (ms === CHECK_MS) return onStallTimer(callback);
      return ms === DEADLINE_MS && isPatient ? () => undefined : real.after(ms, callback);
    };
    isPatient = false;
    service = await startService({ model: scriptedModel(), system: { ...real, after } });
    rest = restClient(service.url);
    const nodes = [{ id: 'a', systemPrompt: 'p'.repeat(250_000) }];
    for (let at = 0; at < MANY; at += 1) {
      await service.context.blueprints.create({ id: `large-${at}`, name: 'Large', nodes });
    }
  });
  beforeEach(() => {
    onStallTimer = () => () => undefined;
    isPatient = false;
    open = [];
  });
  afterEach(() => {
    for (const reply of open) reply.destroy();
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });

  /** Requests a list and reads nothing yet. */
  const begin = (): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      get(service.url + COUNCILS, { agent: false }, (reply) => {
        open.push(reply.pause());
        resolve(reply);
      }).on('error', reject);
    });
  const textOf = async (reply: IncomingMessage): Promise<string> => {
    const chunks: Buffer[] = [];
    for await (const chunk of reply) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  };

  it('is sent completely, newest first, each record as it is stored', async () => {
    const list = rest.read(await rest.get(COUNCILS), 200, 'blueprint-list.json');
    expect(new Set(list.map(({ id }) => id)).size).to.equal(MANY);
    const times = list.map(({ updatedAt }) => updatedAt);
    expect(times).to.deep.equal([...times].sort().reverse());
    const alone = rest.read(await rest.get(`${COUNCILS}large-7`), 200, 'blueprint.json');
    expect(list.find(({ id }) => id === 'large-7')).to.deep.equal(alone);
    expect((await rest.send('HEAD', COUNCILS)).status).to.equal(200);
  });

  soakIt('waits while clients read two other lists, without delaying other requests', async () => {
    const [first, second] = [await begin(), await begin()];
    let hasBegun = false;
    const third = begin().finally(() => (hasBegun = true));
    for (let round = 0; round < 20; round += 1) {
      expect((await rest.get('/api/health')).status).to.equal(200);
      expect((await rest.get(`${COUNCILS}large-1`)).status).to.equal(200);
    }
    expect(hasBegun).to.equal(false);
    first.destroy();
    const texts = await Promise.all([third.then(textOf), textOf(second)]);
    expect(texts[0]).to.equal(texts[1]);
    expect((JSON.parse(texts[0]) as Blueprint[]).length).to.equal(MANY);
  });

  it('breaks off if its client reads nothing, so that waiting requests proceed', async () => {
    onStallTimer = (callback) => nodeSystem().after(100, callback);
    const idle = await Promise.all([begin(), begin()]);
    expect((await rest.get(`${COUNCILS}?limit=1`)).status).to.equal(200);
    const outcomes = idle.map((reply) =>
      textOf(reply).then(
        () => 'whole',
        () => 'broken off',
      ),
    );
    // The other list may still arrive in time, because its client reads now.
    expect(await Promise.all(outcomes)).to.include('broken off');
  });

  soakIt('is refused while a hundred other requests wait', async () => {
    isPatient = true;
    await Promise.all([begin(), begin()]);
    const waiting = Array.from({ length: 105 }, () => rest.get(`${COUNCILS}?limit=1`));
    const refused = await Promise.race(waiting);
    expect(rest.problem(refused, 503).detail).to.include('try again');
    for (const reply of open) reply.destroy();
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).to.be.within(100, 104);
    expect(statuses.every((status) => status === 200 || status === 503)).to.equal(true);
  });
});
