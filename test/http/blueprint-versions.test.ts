import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { blueprintStream } from '../../src/blueprint/events.js';
import { GENESIS_HASH, checkLink, exportedOf } from '../../src/eventsourcing/hash-chain.js';
import type { Blueprint, BlueprintVersion } from '../../src/generated/schemas.js';
import { nodeSystem } from '../../src/system/system.js';
import { allOf } from '../support/all-of.js';
import { addFirstKey, addKey, bearer } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

const COUNCILS = '/api/councils/';

describe('GET /api/councils/{blueprint_id}/versions', () => {
  let service: RunningService;
  let rest: RestClient;
  let ann: string;
  let bob: string;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    ann = await addFirstKey(service.url, ['admin', 'read', 'author'], 'ann');
    rest = restClient(service.url, bearer(ann));
    bob = await addKey(rest, { name: 'bob', scopes: ['author'] });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const versions = async (id: string, query = ''): Promise<readonly BlueprintVersion[]> =>
    rest.read(await rest.get(`${COUNCILS}${id}/versions${query}`), 200, 'blueprint-version-list.json');
  const create = async (
    id: string,
    name: string,
    nodes: readonly object[] = [{ id: 'a', mine: 1 }],
  ): Promise<Blueprint> => rest.read(await rest.post(COUNCILS, { id, name, nodes }), 201, 'blueprint.json');
  const change = async (id: string, body: object, key = ann): Promise<Blueprint> => {
    const reply = await rest.send('PUT', `${COUNCILS}${id}`, { body, headers: bearer(key) });
    return rest.read(reply, 200, 'blueprint.json');
  };
  const remove = (id: string): Promise<unknown> => rest.send('DELETE', `${COUNCILS}${id}`);

  it('returns every complete version, newest first, with its actor and its hash in the chain', async () => {
    const saved = [
      await create('plain', 'One'),
      await change('plain', { name: 'Two', approvals: { by: ['ann'] } }, bob),
      await change('plain', { nodes: [{ id: 'b' }] }),
    ];
    const found = await versions('plain');
    for (const [index, version] of found.entries()) expect(version).to.deep.include(saved[2 - index]);
    expect(found.map(({ seq, actor, deleted }) => [seq, actor, deleted])).to.deep.equal([
      [2, 'ann', null],
      [1, 'bob', null],
      [0, 'ann', null],
    ]);
    let previous = GENESIS_HASH;
    for await (const event of service.context.log.readStream(blueprintStream('plain'))) {
      const exported = exportedOf(event);
      expect(checkLink(previous, exported, nodeSystem().sha256)).to.equal(true);
      expect(found[2 - exported.seq]).to.include({ hash: exported.hash, at: exported.at });
      previous = exported.hash;
    }
  });

  it('restores a version that a client saves again', async () => {
    const first = await create('restored', 'One');
    await change('restored', { name: 'Two', nodes: [] });
    const [, { name, nodes, edges } = { name: '', nodes: [], edges: [] }] = await versions('restored');
    const { version, updatedAt, ...restored } = await change('restored', { name, nodes, edges });
    expect(version).to.equal(3);
    expect({ ...restored, updatedAt, version: 1 }).to.deep.equal({ ...first, updatedAt });
  });

  it('keeps the versions of a deleted blueprint, also after a new one with the same id', async () => {
    await create('gone', 'One');
    await change('gone', { name: 'Two' });
    await remove('gone');
    const [last, first] = await versions('gone');
    expect(last)
      .to.deep.include({ version: 2, name: 'Two' })
      .and.have.property('deleted')
      .that.deep.include({ seq: 2, actor: 'ann' });
    expect(first).to.deep.include({ version: 1, deleted: null });
    await create('gone', 'Anew');
    expect((await versions('gone')).map(({ seq, version, deleted }) => [seq, version, deleted !== null])).to.deep.equal(
      [
        [3, 1, false],
        [1, 2, true],
        [0, 1, false],
      ],
    );
    const [older] = await versions('gone', '?limit=1&before=3');
    expect(older?.deleted).to.deep.equal(last?.deleted);
  });

  it('returns pages with a link to the next, and fewer versions per page if they are large', async () => {
    await create('many', '0');
    for (let at = 1; at < 5; at += 1) await change('many', { name: String(at) });
    const client = new CouncilClient({ url: service.url, key: ann });
    const pages = await allOf(client.blueprints.versions('many', { limit: 2 }).pages());
    expect(pages.map((page) => page.map(({ name }) => name))).to.deep.equal([['4', '3'], ['2', '1'], ['0']]);
    expect(await versions('many', '?before=0')).to.deep.equal([]);

    await create('large', '0', [{ id: 'a', systemPrompt: 'p'.repeat(250_000) }]);
    for (let at = 1; at < 12; at += 1) await change('large', { name: String(at) });
    expect(await versions('large')).to.have.lengthOf(9);
    expect(await allOf(client.blueprints.versions('large'))).to.have.lengthOf(12);
  });

  it('answers 404 for an unknown blueprint, and 422 for an invalid page', async () => {
    for (const id of ['nothing', 'run', '%00']) rest.problem(await rest.get(`${COUNCILS}${id}/versions`), 404);
    for (const query of ['limit=0', 'limit=201', 'before=-1', 'before=x', 'limit=1&limit=2']) {
      rest.problem(await rest.get(`${COUNCILS}plain/versions?${query}`), 422);
    }
  });
});
