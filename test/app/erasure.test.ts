import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { get } from 'node:http';
import { expect } from 'chai';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { filesWith } from '../support/files-with.js';
import { graphOf } from '../support/given.js';
import { startGodRun } from '../support/god-run.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const WORD = 'zyxcanaryword';

describe('The erasure of a run', () => {
  let service: RunningService;
  let client: RestClient;
  let dir: TempDir;

  beforeEach(async () => {
    dir = tempDir();
    service = await startService({ dataDir: dir.path });
    client = restClient(service.url);
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  const ended = async (topic: string, headers = {}): Promise<string> => {
    const body = { input_topic: topic, material: `material ${topic}` };
    const reply = await client.post('/api/councils/run', body, headers);
    const { run_id: runId } = client.read(reply, 202, 'run-start.json');
    await client.until(runId, ({ status }) => status === 'completed');
    return runId;
  };
  const overview = async (): Promise<string> => (await client.get('/api/overview')).text;
  const erase = async (runId: string, reason?: string) =>
    await client.send('DELETE', `/api/runs/${runId}`, reason === undefined ? {} : { body: { reason } });

  it('is refused while the run has not ended, and for an unknown run', async () => {
    const runId = await startGodRun(service.context, graphOf('a -> b'));
    client.problem(await erase(runId), 409);
    expect((await client.poll(runId)).status).to.equal('paused');
    client.problem(await erase(randomUUID()), 404);
    const long = await client.send('DELETE', `/api/runs/${runId}`, { body: { reason: 'x'.repeat(501) } });
    client.problem(long, 422);
  });

  it('answers 204, also repeated, and adds one leaf', async () => {
    const runId = await ended('Trees');
    expect((await erase(runId, 'asked')).status).to.equal(204);
    expect((await erase(runId, 'again')).status).to.equal(204);
    const leaves: unknown[] = [];
    for await (const { data } of service.context.log.readStream('ledger')) leaves.push(JSON.parse(data));
    expect(leaves).to.have.length(2);
    expect(leaves[1]).to.deep.include({ kind: 'erasure', what: 'run', id: runId, reason: 'asked', actor: null });
  });

  it('makes every route with its id answer 410 with the erasure, and not one with another', async () => {
    const [runId, other] = [await ended(`About ${WORD}`), await ended('Trees')];
    await erase(runId, 'asked');
    const { paths } = JSON.parse((await client.get('/api/openapi.json')).text) as Described;
    const found: Record<string, number> = {};
    for (const [path, methods] of Object.entries(paths)) {
      if (!path.includes('{run_id}')) continue;
      for (const method of Object.keys(methods)) {
        if (method === 'delete') continue;
        const { query, body } = NEEDED[`${method} ${path}`] ?? {};
        const at = path.replace('{run_id}', runId) + (query ?? '');
        const sent = method === 'post' ? { body: body ?? {} } : {};
        const reply = await client.send(method.toUpperCase(), at, sent);
        found[`${method} ${path}`] = reply.status;
        if (reply.status !== 410) continue;
        const { erased } = client.problem(reply, 410);
        expect(erased).to.deep.include({ by: null, reason: 'asked' });
        expect(reply.text).not.to.include(WORD);
      }
    }
    expect(Object.entries(found).filter(([, status]) => status !== 410)).to.deep.equal([]);
    expect(Object.keys(found).length).to.be.greaterThan(15);
    expect((await client.poll(other)).status).to.equal('completed');
  });

  it('takes the run out of lists, counts and the search, and keeps it in the overview', async () => {
    const [runId, other] = [await ended(`About ${WORD}`), await ended('Trees')];
    const before = await overview();
    expect(before).to.match(/"completed":2/);
    await erase(runId);
    expect((await client.get('/api/runs/')).text)
      .to.include(other)
      .and.not.to.include(runId);
    expect((await client.get(`/api/runs/?q=${WORD}`)).text).to.equal('[]');
    expect(client.read(await client.get('/api/runs/counts'), 200, 'run-counts.json').all).to.equal(1);
    expect(client.read(await client.get('/api/runs/counts'), 200, 'run-counts.json').all).to.equal(1);
    expect((await client.get('/api/runs/export?format=ndjson')).text).not.to.include(runId);
    expect(await overview()).to.equal(before);
  });

  it('leaves forks whole: their parent says that it is erased, and their verification finds no difference', async () => {
    const runId = await ended(`About ${WORD}`);
    const reply = await client.post(`/api/runs/${runId}/fork`, { at: 5 });
    const { run_id: forkId } = client.read(reply, 202, 'run-start.json');
    await client.until(forkId, ({ status }) => status === 'completed');
    await erase(runId);
    const verification = client.read(await client.get(`/api/runs/${forkId}/verify`), 200, 'verification.json');
    expect(verification.first_difference).to.equal(null);
    const genealogy = client.read(await client.get(`/api/runs/${forkId}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.parent).to.deep.include({ run_id: runId, erased: true });
    expect((await client.get(`/api/runs/${forkId}/events`)).text).to.include(WORD);
    for (const path of ['deliberation', 'sources', 'state', 'material', 'chart'])
      expect((await client.get(`/api/runs/${forkId}/${path}`)).status, path).to.equal(200);
  });

  it('ends the doors of other protocols and the feed for the run', async () => {
    const runId = await ended(`About ${WORD}`);
    const post = (path: string, body: object) =>
      fetch(service.url + path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
        body: JSON.stringify(body),
      });
    const answer = await post('/v1/responses', { model: 'council', input: 'Trees', store: true });
    const { id } = (await answer.json()) as { readonly id: string };
    await erase(runId);
    const asRun = id.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    expect((await erase(asRun)).status).to.equal(204);
    const next = await post('/v1/responses', { model: 'council', input: 'More', previous_response_id: id });
    expect(next.status).to.equal(410);
    const read = await fetch(`${service.url}/v1/responses/${id}`);
    expect([read.status, (await read.text()).includes('Trees')]).to.deep.equal([410, false]);
    const call = { name: 'await_run', arguments: { run_id: runId, timeout_s: 1 } };
    const called = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call });
    const said = await called.text();
    expect(said, said).to.match(/was erased/);
    expect(said).not.to.include(WORD);
    const feed = await fetch(`${service.url}/api/feed`);
    const reader = feed.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    expect(Buffer.from((first?.value as Uint8Array | undefined) ?? []).toString()).not.to.include(runId);
  });

  it('refuses sockets and streams of the run, and ends those that are open', async () => {
    const runId = await ended(`About ${WORD}`);
    const open = await fetch(`${service.url}/api/runs/${runId}/stream`);
    await erase(runId);
    expect(await open.text()).to.include(WORD);
    const status = await new Promise<number | undefined>((resolve) => {
      get(`${service.url}/ws/council/${runId}`, {
        headers: {
          Connection: 'Upgrade',
          Upgrade: 'websocket',
          'Sec-WebSocket-Version': '13',
          'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
        },
      }).on('response', (response) => resolve(response.resume().statusCode));
    });
    expect(status).to.equal(410);
  });

  it('gives readers that it meets the whole run or 410, and never a fault', async () => {
    for (let round = 0; round < (IS_SOAK ? 20 : 2); round += 1) {
      const runId = await ended(`About ${WORD}`);
      // Its leaf comes a moment after its end, and `verify` shows it.
      await untilTrue(async () => !(await client.get(`/api/runs/${runId}/verify`)).text.includes('"ledger":null'));
      const whole = new Map<string, string>();
      const paths = ['events', 'state', 'draft', 'genealogy', 'verify', 'chart', 'material', 'stream', 'deliberation'];
      for (const path of paths) whole.set(path, (await client.get(`/api/runs/${runId}/${path}`)).text);
      const erasing = erase(runId);
      for (let reads = 0; reads < 12; reads += 1)
        await Promise.all(
          paths.map(async (path) => {
            const { status, text } = await client.get(`/api/runs/${runId}/${path}`);
            if (status !== 410) expect(text, path).to.equal(whole.get(path));
          }),
        );
      expect((await erasing).status).to.equal(204);
      expect(service.faults).to.deep.equal([]);
    }
  });

  it('is no difference to a verification that meets it before the events are removed', async () => {
    await service.stop();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, { remove: (streams) => held.then(() => log.remove(streams)) });
    service = await startService({ dataDir: dir.path, decorate });
    client = restClient(service.url);
    const runId = await ended(`About ${WORD}`);
    const erasing = erase(runId);
    await untilTrue(async () => (await service.context.history.erasedAs('run', runId)) !== null);
    const verified = await client.get(`/api/runs/${runId}/verify`);
    release();
    client.problem(verified, 410);
    expect(client.read(await client.get('/api/runs/counts'), 200, 'run-counts.json').all).to.equal(0);
    expect((await erasing).status).to.equal(204);
    expect(service.faults).to.deep.equal([]);
  });

  it('answers a repeated start with its Idempotency-Key by 410', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const runId = await ended('Trees', headers);
    await erase(runId);
    const body = { input_topic: 'Trees', material: 'material Trees' };
    client.problem(await client.post('/api/councils/run', body, headers), 410);
  });

  it('keeps all of this and the totals when the views are folded again', async () => {
    const runId = await ended(`About ${WORD}`);
    await ended('Trees');
    const before = await overview();
    await erase(runId, 'asked');
    await service.stop();
    rmSync(join(dir.path, 'views'), { recursive: true });
    service = await startService({ dataDir: dir.path });
    client = restClient(service.url);
    expect(await overview()).to.equal(before);
    expect(client.read(await client.get('/api/runs/counts'), 200, 'run-counts.json').all).to.equal(1);
    expect(client.problem(await client.get(`/api/runs/${runId}`), 410).erased?.reason).to.equal('asked');
    expect((await erase(runId)).status).to.equal(204);
  });

  onEmbeddedLog(() =>
    it('leaves no byte of its texts in the data directory', async () => {
      const kept = await ended('About another canary');
      for (let n = 0; n < 3; n += 1) {
        const runId = await ended(`About ${WORD} and ${'trees '.repeat(300 * n)}`);
        expect(filesWith(service.dataDir, WORD)).not.to.deep.equal([]);
        await erase(runId);
        expect(filesWith(service.dataDir, WORD)).to.deep.equal([]);
      }
      expect((await client.poll(kept)).status).to.equal('completed');
    }),
  );
});

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** What a route needs to reach its run. */
const NEEDED: Readonly<Record<string, { readonly query?: string; readonly body?: object }>> = {
  'get /api/runs/{run_id}/prompt': { query: '?step=1' },
  'get /api/runs/{run_id}/state': { query: '?at=0' },
  'post /api/runs/{run_id}/fork': { body: { at: 3 } },
  'post /api/councils/run/{run_id}/approve': { body: { action: 'approve' } },
};
