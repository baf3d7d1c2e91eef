import { join } from 'node:path';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { Leaf } from '../../src/ledger/events.js';
import { LEDGER_STREAM, leafEvent } from '../../src/ledger/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { councilService } from '../support/council-service.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import { leafHash, openNote, openProof, parseCheckpoint, parseVkey, treeHash } from './verifier.js';

async function proofOf(rest: RestClient, runId: string): Promise<string> {
  let reply: Reply | null = null;
  await untilTrue(async () => (reply = await rest.get(`/api/runs/${runId}/proof`)).status === 200);
  return (reply as Reply | null)?.text ?? '';
}

describe('The ledger over HTTP', () => {
  const council = councilService({ ledger: LEDGER_AT_ONCE });
  const bytes = async (path: string): Promise<{ reply: Response; body: Buffer }> => {
    const reply = await fetch(council.service.url + path);
    return { reply, body: Buffer.from(await reply.arrayBuffer()) };
  };

  it('proves the end of a run to a verifier that shares no code with it', async () => {
    const { rest } = council;
    const runId = await rest.start();
    await rest.until(runId, isOver);
    const proof = await proofOf(rest, runId);
    const { vkey } = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
    const { entry, index } = openProof(proof, parseVkey(vkey ?? ''));
    const leaf: unknown = JSON.parse(entry.toString());
    expect(canonical(leaf)).to.equal(entry.toString());
    const {
      head_hash: headHash,
      events,
      ledger,
    } = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(leaf).to.include({ kind: 'run', runId, events, headHash, status: 'completed' });
    expect(ledger).to.deep.equal({ index, covered: true });
    expect(() => openProof(proof.replace(/^index \d+/m, `index ${index + 1}`), parseVkey(vkey ?? ''))).to.throw();
  });

  it('answers 409 until a checkpoint covers the run, 409 before its end, and 404 for an unknown run', async () => {
    const { rest } = council;
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/proof`), 404);
    const runId = await rest.start();
    const refused = await rest.get(`/api/runs/${runId}/proof`);
    expect(refused.status).to.equal(409);
    await rest.until(runId, isOver);
    const early = await rest.get(`/api/runs/${runId}/proof`);
    if (early.status === 409) expect(Number(early.headers.get('Retry-After'))).to.be.greaterThan(0);
    expect(rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json').valid).to.equal(true);
    await proofOf(rest, runId);
  });

  it('serves tiles from which a monitor computes the checkpoint', async () => {
    const { rest } = council;
    const ids = await Promise.all([1, 2, 3].map(() => rest.start()));
    for (const id of ids) await proofOf(rest, id);
    const note = await bytes('/ledger/checkpoint');
    expect(note.reply.headers.get('Content-Type')).to.equal('text/plain; charset=utf-8');
    const state = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
    const key = parseVkey(state.vkey ?? '');
    const { origin, size, root } = parseCheckpoint(openNote(note.body.toString(), key).text);
    expect(origin).to.equal(state.origin).and.equal(key.name);
    expect(origin).to.match(/^council-run-service\/[0-9a-f-]{36}$/);
    const hashes = await bytes(`/ledger/tile/0/000.p/${size}`);
    expect(hashes.reply.status).to.equal(200);
    expect(hashes.reply.headers.get('Content-Type')).to.equal('application/octet-stream');
    const leaves = Array.from({ length: size }, (_, at) => hashes.body.subarray(at * 32, at * 32 + 32));
    expect(treeHash(leaves).equals(root)).to.equal(true);
    const { body } = await bytes(`/ledger/tile/entries/000.p/${size}`);
    const entries: Buffer[] = [];
    for (let at = 0; at < body.length; at += 2 + body.readUInt16BE(at))
      entries.push(body.subarray(at + 2, at + 2 + body.readUInt16BE(at)));
    expect(entries.map(leafHash)).to.deep.equal(leaves);
    expect(entries.map((each) => fieldOf(JSON.parse(each.toString()), 'runId'))).to.include.members(ids);
  });

  it('has no other tiles', async () => {
    const { size } = council.rest.read(await council.rest.get('/api/ledger'), 200, 'ledger.json');
    const paths = [
      '0/000',
      `0/000.p/${size + 1}`,
      '0/000.p/0',
      '0/0',
      '1/000',
      '64/000',
      'x/000',
      '0/x000/000.p/1',
      '0/001.p/1',
    ];
    for (const path of [...paths, '0/000.p/01', '0/000.p/256', 'entries/000', '00/000.p/1'])
      expect((await bytes(`/ledger/tile/${path}`)).reply.status, path).to.equal(404);
  });

  it('serves full tiles and those of the next level, which a cache may keep for ever, and proves leaves in them', async () => {
    const dir = tempDir();
    const log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
    const leaf = (n: number): Leaf => {
      const rest = { events: 3, headHash: 'a'.repeat(64), status: 'completed', endedAt: nodeSystem().now() } as const;
      return { kind: 'run', runId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`, ...rest };
    };
    const leaves = Array.from({ length: 600 }, (_, n) => leafEvent(leaf(n), nodeSystem()));
    await log.append(LEDGER_STREAM, leaves, 'none');
    await log.close();
    const service = await startService({ dataDir: dir.path, eventStore: null, ledger: LEDGER_AT_ONCE });
    const at = async (path: string) => {
      const reply = await fetch(`${service.url}/ledger/tile/${path}`);
      const caching = reply.headers.get('Cache-Control');
      return { status: reply.status, caching, body: Buffer.from(await reply.arrayBuffer()) };
    };
    const hashes = leaves.map(({ data }) => leafHash(Buffer.from(data)));
    for (const number of [0, 1]) {
      const own = hashes.slice(number * 256, number * 256 + 256);
      const tile = await at(`0/00${number}`);
      expect(tile.caching).to.match(/\bimmutable\b/);
      expect(tile.body.equals(Buffer.concat(own))).to.equal(true);
      const entries = await at(`entries/00${number}`);
      expect(entries.caching).to.match(/\bimmutable\b/);
      expect(entries.body.subarray(2, 2 + entries.body.readUInt16BE(0)).toString()).to.equal(
        leaves[number * 256]?.data,
      );
      expect((await at(`1/000.p/${number + 1}`)).body.subarray(number * 32).equals(treeHash(own))).to.equal(true);
    }
    const partial = await at('0/002.p/88');
    expect(partial.body.equals(Buffer.concat(hashes.slice(512)))).to.equal(true);
    expect(partial.caching).to.equal('no-cache');
    for (const path of ['0/002', '1/000.p/3', '1/000', '2/000.p/1', '0/002.p/89'])
      expect((await at(path)).status).to.equal(404);
    const rest = restClient(service.url);
    const runId = await rest.start();
    const { vkey } = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
    const { index } = openProof(await proofOf(rest, runId), parseVkey(vkey ?? ''));
    expect(index).to.equal(600);
    expect(service.faults).to.deep.equal([]);
    await service.stop();
    dir.remove();
  });
});
