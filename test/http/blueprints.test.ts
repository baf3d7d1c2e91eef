import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { blueprintStream } from '../../src/blueprint/events.js';
import type { Blueprint } from '../../src/generated/schemas.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { damageEvent } from '../support/damaged-log.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const COUNCILS = '/api/councils/';
const PLAIN = { name: 'Plain', nodes: [{ id: 'a' }] };

describe('Blueprints over REST', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    rest = restClient(service.url);
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  const create = async (body: unknown = PLAIN): Promise<Blueprint> =>
    rest.read(await rest.post(COUNCILS, body), 201, 'blueprint.json');
  const get = async (id: string): Promise<Blueprint> =>
    rest.read(await rest.get(`${COUNCILS}${id}`), 200, 'blueprint.json');
  const put = (id: string, body: unknown): Promise<Reply> => rest.send('PUT', `${COUNCILS}${id}`, { body });
  const list = async (): Promise<readonly Blueprint[]> =>
    rest.read(await rest.get(COUNCILS), 200, 'blueprint-list.json');

  it('are created with their defaults and read back as they were answered', async () => {
    const made = await create({
      name: 'Two',
      nodes: [{ id: 'a' }, { id: 'b' }],
      edges: [{ source: 'a', target: 'b' }],
    });
    const plain = { systemPrompt: '', tools: { webSearch: false, pdfReader: false }, position: { x: 0, y: 0 } };
    expect(made).to.deep.include({
      version: 1,
      name: 'Two',
      nodes: [
        { id: 'a', label: 'a', ...plain },
        { id: 'b', label: 'b', ...plain },
      ],
      edges: [{ id: 'a->b', source: 'a', target: 'b', type: 'linear', condition: null }],
      warnings: [],
      roles: [
        { node: 'a', role: 'agent' },
        { node: 'b', role: 'agent' },
      ],
      updatedAt: made.createdAt,
    });
    expect(made.createdAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await get(made.id)).to.deep.equal(made);
  });

  it('keep unknown fields of nodes and edges and drop those of the top level', async () => {
    const node = { id: 'a', colour: 'red', data: { deep: [1, { x: null }] }, tools: { mine: 1 }, position: { z: 3 } };
    const made = await create({
      ...PLAIN,
      nodes: [{ ...node, constructor: { prototype: 1 }, toString: 'x' }],
      edges: [{ source: 'a', target: 'a', animated: true }],
      theme: 'dark',
      warnings: 'none',
      version: 7,
    });
    const [kept] = (await get(made.id)).nodes;
    expect(kept).to.deep.include({
      colour: 'red',
      data: node.data,
      tools: { mine: 1, webSearch: false, pdfReader: false },
      position: { z: 3, x: 0, y: 0 },
      constructor: { prototype: 1 },
      toString: 'x',
    });
    expect(made.edges[0]).to.include({ animated: true });
    expect(made).not.to.have.property('theme');
    expect(made.version).to.equal(1);
  });

  it('are saved without known fields that are null; unknown ones of nodes and edges keep nulls', async () => {
    const known = { label: null, systemPrompt: null, model: null, type: null, temperature: null, maxAttempts: null };
    const node = { id: 'a', ...known, tools: { webSearch: null, mine: null }, position: null, note: null };
    const edge = { id: null, source: 'a', target: 'a', type: null, condition: null, colour: null };
    const made = await create({ id: null, name: 'Nulls', nodes: [node, { id: 'b', tools: null }], edges: [edge] });
    const plain = { systemPrompt: '', tools: { webSearch: false, pdfReader: false }, position: { x: 0, y: 0 } };
    expect(made.nodes).to.deep.equal([
      { id: 'a', label: 'a', ...plain, tools: { ...plain.tools, mine: null }, note: null },
      { id: 'b', label: 'b', ...plain },
    ]);
    expect(made.edges).to.deep.equal([
      { id: 'a->a', source: 'a', target: 'a', type: 'linear', condition: null, colour: null },
    ]);
    expect((await create({ ...PLAIN, edges: null })).edges).to.deep.equal([]);
    const unchanged = rest.read(await put(made.id, { name: null, nodes: null, edges: null }), 200, 'blueprint.json');
    expect(unchanged).to.deep.equal({ ...made, version: 2, updatedAt: unchanged.updatedAt });
  });

  it('keep an unknown field of a node named __proto__, deep inside too', async () => {
    const own = '"__proto__":{"label":"Forged","x":[{"__proto__":null}]}';
    const headers = { 'Content-Type': 'application/json' };
    const body = `{"name":"Own",${own},"nodes":[{"id":"a",${own}}],"edges":[{"source":"a","target":"a",${own}}]}`;
    const reply = await rest.send('POST', COUNCILS, { body, headers });
    const { id, nodes } = rest.read(reply, 201, 'blueprint.json');
    expect(nodes[0]?.label).to.equal('a');
    const answers = [reply, await rest.get(`${COUNCILS}${id}`), await rest.get(`${COUNCILS}?limit=1`)];
    for (const { text } of answers) expect(text.split(own)).to.have.length(3);
    const put = await rest.send('PUT', `${COUNCILS}${id}`, { body: `{"nodes":[{"id":"a",${own}}]}`, headers });
    expect(rest.read(put, 200, 'blueprint.json').nodes[0])
      .to.have.own.property('__proto__')
      .with.property('x');
    expect(Object.keys(Object.prototype)).to.deep.equal([]);
  });

  it('accept an id of the client, once', async () => {
    expect(await create({ ...PLAIN, id: 'My-council_1.0' })).to.include({ id: 'My-council_1.0' });
    const { detail } = rest.problem(await rest.post(COUNCILS, { ...PLAIN, id: 'My-council_1.0' }), 409);
    expect(detail).to.include('My-council_1.0');
    expect((await create({ ...PLAIN, id: 'x'.repeat(128) })).id).to.have.length(128);
  });

  it('accept one of many concurrent creations of an id, and refuse the others', async () => {
    const replies = await Promise.all(Array.from({ length: 30 }, () => rest.post(COUNCILS, { ...PLAIN, id: 'race' })));
    expect(replies.map(({ status }) => status).sort()).to.deep.equal([201, ...Array<number>(29).fill(409)]);
  });

  for (const [what, body, loc, type] of [
    ['no name', { nodes: [] }, ['name'], 'missing'],
    ['an empty name', { ...PLAIN, name: '' }, ['name'], 'string_too_short'],
    ['a name of 256 characters', { ...PLAIN, name: '🌳'.repeat(256) }, ['name'], 'string_too_long'],
    ['nodes that are null', { ...PLAIN, nodes: null }, ['nodes'], 'missing'],
    ['nodes that are no list', { name: 'x', nodes: {} }, ['nodes'], 'list_type'],
    ['a node that is no object', { name: 'x', nodes: ['a'] }, ['nodes', 0], 'dict_type'],
    ['a node with an inherited id', { name: 'x', nodes: [{ toString: 1 }] }, ['nodes', 0, 'id'], 'missing'],
    ['a node named done', { ...PLAIN, nodes: [{ id: 'a' }, { id: 'done' }] }, ['nodes', 1, 'id'], 'reserved'],
    ['a node id twice', { name: 'x', nodes: [{ id: 'a' }, { id: 'a' }] }, ['nodes', 1, 'id'], 'duplicate'],
    ['an id with a slash', { ...PLAIN, id: 'a/b' }, ['id'], 'string_pattern_mismatch'],
    ['an id of 129 characters', { ...PLAIN, id: 'x'.repeat(129) }, ['id'], 'string_pattern_mismatch'],
    ...['run', 'runs', 'upload-pdf', 'validate', '..'].map(
      (id) => [`the id ${id}`, { ...PLAIN, id }, ['id'], 'reserved'] as const,
    ),
    ['201 nodes', { name: 'x', nodes: manyNodes(201) }, ['nodes'], 'too_long'],
    ['1001 edges', { ...PLAIN, edges: manyEdges(1001) }, ['edges'], 'too_long'],
    ['an edge without source', { ...PLAIN, edges: [{ target: 'a' }] }, ['edges', 0, 'source'], 'missing'],
    ['a type of edge', { ...PLAIN, edges: [{ ...edge(), type: 'loop' }] }, ['edges', 0, 'type'], 'enum'],
    ['a temperature over 2', nodeWith({ temperature: 2.1 }), ['nodes', 0, 'temperature'], 'less_than_equal'],
    ['no output tokens', nodeWith({ maxOutputTokens: 0 }), ['nodes', 0, 'maxOutputTokens'], 'greater_than_equal'],
    ['half a token', nodeWith({ maxOutputTokens: 1.5 }), ['nodes', 0, 'maxOutputTokens'], 'int_type'],
    ['a panel without members', nodeWith({ type: 'panel' }), ['nodes', 0, 'members'], 'missing'],
    ['a panel of one', nodeWith({ type: 'panel', members: ['x'] }), ['nodes', 0, 'members'], 'too_short'],
    ['a panel of nine', nodeWith({ type: 'panel', members: ids(9) }), ['nodes', 0, 'members'], 'too_long'],
    ['a member id twice', panelOf('x', { id: 'm1' }), ['nodes', 0, 'members', 1, 'id'], 'duplicate'],
    ['an empty member id', panelOf({ id: '' }), ['nodes', 0, 'members', 0, 'id'], 'string_too_short'],
    ['a member without a model name', panelOf(''), ['nodes', 0, 'members', 0], 'string_too_short'],
    ['a member that is a number', panelOf(7), ['nodes', 0, 'members', 0], 'string_type'],
    [
      'a member of two lines',
      panelOf({ label: 'A\nB' }),
      ['nodes', 0, 'members', 0, 'label'],
      'string_pattern_mismatch',
    ],
    ['a member without a label', panelOf({ label: '' }), ['nodes', 0, 'members', 0, 'label'], 'string_too_short'],
    [
      'a member with a label of 201 characters',
      panelOf({ label: 'x'.repeat(201) }),
      ['nodes', 0, 'members', 0, 'label'],
      'string_too_long',
    ],
    ['a member id of two lines', panelOf({ id: 'a\nb' }), ['nodes', 0, 'members', 0, 'id'], 'string_pattern_mismatch'],
    ['a hot member', panelOf({ temperature: 3 }), ['nodes', 0, 'members', 0, 'temperature'], 'less_than_equal'],
    ['a quorum of none', nodeWith({ members: ids(3), quorum: 0 }), ['nodes', 0, 'quorum'], 'greater_than_equal'],
    ['a quorum of too many', nodeWith({ members: ids(3), quorum: 4 }), ['nodes', 0, 'quorum'], 'less_than_equal'],
    ['a long grace period', nodeWith({ graceMs: 600_001 }), ['nodes', 0, 'graceMs'], 'less_than_equal'],
    ['a rank that keeps none', nodeWith({ type: 'rank', keep: 0 }), ['nodes', 0, 'keep'], 'greater_than_equal'],
    ['an unknown aggregate', nodeWith({ type: 'critic', aggregate: 'sum' }), ['nodes', 0, 'aggregate'], 'enum'],
    ['an unknown type', nodeWith({ type: 'vote' }), ['nodes', 0, 'type'], 'enum'],
    ['a tool as text', nodeWith({ tools: { webSearch: 'yes' } }), ['nodes', 0, 'tools', 'webSearch'], 'bool_type'],
  ] as const) {
    it(`refuse ${what} with 422, in create and validate`, async () => {
      for (const path of [COUNCILS, `${COUNCILS}validate`]) {
        const { errors } = rest.problem(await rest.post(path, body), 422);
        expect(errors?.[0]).to.deep.include({ loc: ['body', ...loc], type });
      }
    });
  }

  it('show members with ids and labels, and take them back unchanged', async () => {
    const members = ['gpt', { id: 'b', model: null, systemPrompt: 'Brief.', note: null }];
    const made = await create({
      name: 'Panel',
      nodes: [
        { id: 'p', type: 'panel', members, quorum: 1, graceMs: 0 },
        { id: 'r', type: 'rank', keep: 1 },
        { id: 'j', type: 'judge' },
      ],
      edges: [
        { source: 'p', target: 'r' },
        { source: 'r', target: 'j' },
      ],
    });
    expect(made.warnings).to.deep.equal([]);
    expect(made.roles.map(({ role }) => role)).to.deep.equal(['panel', 'rank', 'judge']);
    expect(made.nodes[0]).to.deep.include({
      members: [
        { id: 'm1', label: 'm1', model: 'gpt' },
        { id: 'b', label: 'b', systemPrompt: 'Brief.', note: null },
      ],
      quorum: 1,
      graceMs: 0,
    });
    const again = rest.read(await put(made.id, { nodes: made.nodes }), 200, 'blueprint.json');
    expect(again.nodes).to.deep.equal(made.nodes);
  });

  it('are accepted at their limits', async () => {
    await create({ name: '🌳'.repeat(255), nodes: manyNodes(200), edges: manyEdges(1000) });
  });

  it('are refused with 413 over 256 KiB, in every endpoint', async () => {
    const body = { ...PLAIN, nodes: [{ id: 'a', systemPrompt: 'x'.repeat(256 * 1024) }] };
    const { id } = await create();
    rest.problem(await rest.post(COUNCILS, body), 413);
    rest.problem(await rest.post(`${COUNCILS}validate`, body), 413);
    rest.problem(await put(id, body), 413);
    rest.problem(await rest.post(COUNCILS, 'x', { 'Content-Type': 'text/plain' }), 415);
  });

  it('are accepted at exactly 256 KiB, with and without edges', async () => {
    const sized = (systemPrompt: string): unknown => ({ ...PLAIN, nodes: [{ id: 'a', systemPrompt }] });
    const available = 256 * 1024 - JSON.stringify(sized('')).length;
    const made = await create(sized('x'.repeat(available)));
    expect(made.edges).to.deep.equal([]);
    rest.read(await put(made.id, sized('y'.repeat(available))), 200, 'blueprint.json');
  });

  it('are refused with 413 when two changes add up to more than 256 KiB, and stay unchanged', async () => {
    const made = await create();
    const big = 'x'.repeat(250_000);
    const first = rest.read(await put(made.id, { nodes: [{ id: 'a', systemPrompt: big }] }), 200, 'blueprint.json');
    const edges = [{ source: 'a', target: 'a', note: big }];
    expect(rest.problem(await put(made.id, { edges }), 413).detail).to.match(/500\d\d\d bytes, at most 262144 fit/);
    expect(await get(made.id)).to.deep.equal(first);
    rest.read(await put(made.id, { edges, nodes: [{ id: 'a' }] }), 200, 'blueprint.json');
  });

  it('show the role of each node, in every answer that shows them', async () => {
    const nodes = [{ id: 'a', label: 'Kritiker(in)' }, { id: 'b' }, { id: 'c', label: 'Critic', type: 'agent' }];
    const edges = [{ source: 'b', target: 'c', type: 'conditional', condition: 'approve' }];
    const roles = [
      { node: 'a', role: 'critic' },
      { node: 'b', role: 'critic' },
      { node: 'c', role: 'agent' },
    ];
    const body = { name: 'Roles', nodes, edges };
    const validation = rest.read(await rest.post(`${COUNCILS}validate`, body), 200, 'blueprint-validation.json');
    expect(validation.roles).to.deep.equal(roles);
    const made = await create(body);
    expect(made.roles).to.deep.equal(roles);
    const again = rest.read(await put(made.id, made), 200, 'blueprint.json');
    expect(again).to.deep.equal({ ...made, version: 2, updatedAt: again.updatedAt });
    const changed = rest.read(await put(made.id, { edges: [], roles: [] }), 200, 'blueprint.json');
    expect(changed.roles[1]).to.deep.equal({ node: 'b', role: 'agent' });
    expect(await get(made.id)).to.deep.equal(changed);
    expect((await list())[0]).to.deep.equal(changed);
    for await (const { data } of service.context.log.readStream(blueprintStream(made.id))) {
      expect(JSON.parse(data)).to.have.property('blueprint').that.does.not.have.property('roles');
    }
  });

  describe('have an ETag', () => {
    const tagIn = (reply: Reply): string => reply.headers.get('ETag') ?? '';
    const path = (id: string): string => `${COUNCILS}${id}`;
    const change = (id: string, tag: string, body: object = { name: 'Next' }): Promise<Reply> =>
      rest.send('PUT', path(id), { body, headers: { 'If-Match': tag } });
    const remove = (id: string, tag: string): Promise<Reply> =>
      rest.send('DELETE', path(id), { headers: { 'If-Match': tag } });

    it('that is strong, the same in every answer to one version, and another after each change', async () => {
      const created = await rest.post(COUNCILS, PLAIN);
      const { id } = rest.read(created, 201, 'blueprint.json');
      expect(tagIn(created)).to.match(/^"[0-9a-f]{64}"$/);
      expect(tagIn(await rest.get(path(id)))).to.equal(tagIn(created));
      const updated = await put(id, {});
      expect(tagIn(updated)).to.not.equal(tagIn(created));
      expect(tagIn(await rest.get(path(id)))).to.equal(tagIn(updated));
      await rest.send('DELETE', path(id));
      const next = await rest.post(COUNCILS, { ...PLAIN, id });
      expect([tagIn(created), tagIn(updated)]).not.to.include(tagIn(next));
    });

    it('that gets 304 when If-None-Match names it', async () => {
      const created = await rest.post(COUNCILS, PLAIN);
      const { id } = rest.read(created, 201, 'blueprint.json');
      for (const known of [tagIn(created), `"other", W/${tagIn(created)}`, '*']) {
        const reply = await rest.send('GET', path(id), { headers: { 'If-None-Match': known } });
        expect([reply.status, reply.text, tagIn(reply)]).to.deep.equal([304, '', tagIn(created)]);
      }
      await put(id, {});
      const reply = await rest.send('GET', path(id), { headers: { 'If-None-Match': tagIn(created) } });
      expect(rest.read(reply, 200, 'blueprint.json').version).to.equal(2);
    });

    it('that If-Match must name: a change or deletion with a stale ETag gets 412 and has no effect', async () => {
      const created = await rest.post(COUNCILS, PLAIN);
      const { id } = rest.read(created, 201, 'blueprint.json');
      const old = tagIn(created);
      const changed = await change(id, `"other", ${old}`);
      expect(rest.read(changed, 200, 'blueprint.json').version).to.equal(2);
      const now = tagIn(changed);
      for (const stale of [old, `W/${now}`, now.replaceAll('"', ''), '"*"', '', '"a","b"', `${now}x`]) {
        for (const reply of [await change(id, stale), await remove(id, stale)]) {
          expect(rest.problem(reply, 412).detail).to.include(id).and.include('version 2');
        }
      }
      expect(tagIn(await rest.get(path(id)))).to.equal(now);
      expect(rest.read(await change(id, '*'), 200, 'blueprint.json').version).to.equal(3);
      expect((await remove(id, tagIn(await rest.get(path(id))))).status).to.equal(204);
    });

    it('that is checked after the fields and the existence of the blueprint', async () => {
      const { id } = await create();
      rest.problem(await change(id, '"old"', { nodes: 1 }), 422);
      for (const tag of ['"old"', '*']) {
        rest.problem(await change('nobody', tag), 404);
        rest.problem(await remove('nobody', tag), 404);
      }
    });
  });

  it('are changed by PUT only in the fields of its body', async () => {
    const made = await create({ ...PLAIN, edges: [{ source: 'a', target: 'gone' }] });
    const renamed = rest.read(await put(made.id, { name: 'New', id: 'other', version: 99 }), 200, 'blueprint.json');
    expect(renamed).to.deep.equal({ ...made, name: 'New', version: 2, updatedAt: renamed.updatedAt });
    expect(renamed.updatedAt >= made.updatedAt).to.equal(true);
    const mended = rest.read(await put(made.id, { edges: [] }), 200, 'blueprint.json');
    expect(mended).to.deep.include({ name: 'New', version: 3, edges: [], warnings: [], createdAt: made.createdAt });
    expect(rest.read(await put(made.id, {}), 200, 'blueprint.json').version).to.equal(4);
    rest.problem(await put(made.id, { nodes: [{ id: 'a' }, { id: 'a' }] }), 422);
    rest.problem(await put(made.id, { nodes: [{ id: 'done' }] }), 422);
    rest.problem(await put('nobody', { name: '' }), 422);
    expect(rest.problem(await put('nobody', {}), 404).detail).to.include('nobody');
  });

  it('are not found after DELETE, and can be created again from version 1', async () => {
    const { id } = await create({ ...PLAIN, id: 'phoenix' });
    const reply = await rest.send('DELETE', `${COUNCILS}${id}`);
    expect([reply.status, reply.text]).to.deep.equal([204, '']);
    for (const gone of [await rest.get(`${COUNCILS}${id}`), await put(id, {})]) rest.problem(gone, 404);
    expect(rest.problem(await rest.send('DELETE', `${COUNCILS}${id}`), 404).detail).to.include(id);
    expect((await list()).map((each) => each.id)).not.to.include(id);
    expect(await create({ ...PLAIN, id })).to.include({ id, version: 1 });
    expect((await list())[0]?.id).to.equal(id);
  });

  it('are listed by latest update, with the same fields as a single blueprint', async () => {
    const first = await create({ ...PLAIN, id: 'list-1' });
    const second = await create({ ...PLAIN, id: 'list-2' });
    while (new Date().toISOString() <= second.updatedAt) await get(first.id);
    const changed = rest.read(await put(first.id, { name: 'Again' }), 200, 'blueprint.json');
    expect((await list()).slice(0, 2)).to.deep.equal([changed, second]);
  });

  it('are listed in pages, with 422 for a page out of range', async () => {
    const all = await list();
    const page = rest.read(await rest.get(`${COUNCILS}?limit=2&offset=1`), 200, 'blueprint-list.json');
    expect(page).to.deep.equal(all.slice(1, 3));
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'offset=-1']) {
      rest.problem(await rest.get(`${COUNCILS}?${query}`), 422);
    }
  });

  for (const id of ['run', 'validate', 'a%2Fb', '__proto__']) {
    it(`are not found under ${id.slice(0, 20)}`, async () => {
      const isPath = id === 'run' || id === 'validate';
      rest.problem(await rest.get(`${COUNCILS}${id}`), isPath ? 405 : 404);
      rest.problem(await put(id, {}), isPath ? 405 : 404);
    });
  }

  it('are refused with line breaks or control characters in a label, in every endpoint', async () => {
    const { id } = await create();
    for (const label of ['A\n## B', 'A\u0000', 'A\u2028B']) {
      const body = { ...PLAIN, nodes: [{ id: 'a' }, { id: 'b', label }] };
      const replies = [
        await rest.post(COUNCILS, body),
        await put(id, body),
        await rest.post(`${COUNCILS}validate`, body),
        await rest.post(`${COUNCILS}try`, { ...body, input_topic: 'Trees' }),
      ];
      for (const reply of replies) {
        const { errors } = rest.problem(reply, 422);
        expect(errors?.[0], JSON.stringify(label)).to.deep.equal({
          loc: ['body', 'nodes', 1, 'label'],
          msg: 'String should be one line without control characters',
          type: 'string_pattern_mismatch',
        });
      }
    }
    expect((await get(id)).version).to.equal(1);
    expect((await create({ ...PLAIN, nodes: [{ id: 'a', label: 'Prüfer – 漢 “x”' }] })).version).to.equal(1);
  });

  it('are validated without being saved', async () => {
    const before = await list();
    const validate = async (body: unknown) =>
      rest.read(await rest.post(`${COUNCILS}validate`, body), 200, 'blueprint-validation.json');
    const roles = [{ node: 'a', role: 'agent' }];
    expect(await validate(PLAIN)).to.deep.equal({ valid: true, warnings: [], roles });
    const wrong = await validate({ ...PLAIN, edges: [{ source: 'a', target: 'nowhere' }] });
    expect(wrong.valid).to.equal(false);
    expect(wrong.warnings[0]?.path).to.equal('edges[0].target');
    expect(wrong.warnings[0]?.message).to.include('nowhere');
    expect(await list()).to.deep.equal(before);
  });
});

function edge(): { readonly source: string; readonly target: string } {
  return { source: 'a', target: 'a' };
}

function nodeWith(settings: object): object {
  return { name: 'x', nodes: [{ id: 'a', ...settings }] };
}

/** A panel of the given member and another. */
function panelOf(member: unknown, other: unknown = 'other'): object {
  return nodeWith({ type: 'panel', members: [member, other] });
}

function ids(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `m${at}`);
}

function manyNodes(count: number): readonly { readonly id: string }[] {
  return Array.from({ length: count }, (_, index) => ({ id: `n${index}` }));
}

function manyEdges(count: number): readonly { readonly source: string; readonly target: string }[] {
  return Array.from({ length: count }, (_, index) => ({ source: `n${index % 200}`, target: `n${(index * 7) % 200}` }));
}

describe('A blueprint whose record is corrupt', () => {
  onEmbeddedLog(() => {
    for (const views of ['kept', 'deleted']) {
      it(`is found when its file was changed on the disk, views ${views}, and can be deleted`, async () => {
        const dir = tempDir();
        const first = await startService({ model: scriptedModel(), dataDir: dir.path });
        const author = restClient(first.url);
        for (const id of ['plain', 'other'])
          author.read(await author.post(COUNCILS, { ...PLAIN, id }), 201, 'blueprint.json');
        await author.send('PUT', `${COUNCILS}plain`, { body: { name: 'As saved' } });
        const saved = await lastEvent(first.context.log, blueprintStream('plain'));
        await first.stop();
        damageEvent(dir.path, saved?.id ?? '', ['As saved', 'As forged']);
        if (views === 'deleted') rmSync(join(dir.path, 'views'), { recursive: true });
        const second = await startService({ model: scriptedModel(), dataDir: dir.path });
        const rest = restClient(second.url);
        try {
          for (const reply of [
            ...(await Promise.all(['', '/chart', '/versions'].map((path) => rest.get(`${COUNCILS}plain${path}`)))),
            await rest.send('PUT', `${COUNCILS}plain`, { body: { edges: [] } }),
            await rest.post(`${COUNCILS}plain/run`, { input_topic: 'x' }),
          ]) {
            expect(rest.problem(reply, 500).detail).to.match(/^The record of this blueprint is damaged /);
          }
          rest.read(await rest.get(`${COUNCILS}other`), 200, 'blueprint.json');
          expect((await rest.get('/api/health/ready')).status).to.equal(200);
          const listed = rest.read(await rest.get(COUNCILS), 200, 'blueprint-list.json');
          // Its row keeps the last valid record that was folded.
          expect(listed.find(({ id }) => id === 'plain')?.name).to.equal(views === 'kept' ? 'As saved' : 'Plain');
          expect((await rest.send('DELETE', `${COUNCILS}plain`)).status).to.equal(204);
          rest.problem(await rest.get(`${COUNCILS}plain`), 404);
          rest.read(await rest.post(COUNCILS, { ...PLAIN, id: 'plain' }), 201, 'blueprint.json');
          rest.read(await rest.get(`${COUNCILS}plain`), 200, 'blueprint.json');
        } finally {
          await second.stop();
          dir.remove();
        }
      });
    }
  });
});
