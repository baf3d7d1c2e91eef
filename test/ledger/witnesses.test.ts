import { expect } from 'chai';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { checkpointText, newKeyPem, noteSigner, vkeyText } from '../../src/ledger/note.js';
import { councilBench } from '../support/council-command.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { restClient } from '../support/rest-client.js';
import type { RestClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import type { LedgerState } from '../../src/generated/schemas.js';
import { leafHash, openProof, parseVkey } from './verifier.js';
import type { FakeWitness } from './witness.js';
import { startWitness } from './witness.js';

describe('Witnesses of the ledger', () => {
  let dir: TempDir;
  /** The service has one of its own on the embedded log alone. */
  let keyFile: string;
  let witness: FakeWitness;
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    dir = tempDir();
    keyFile = join(dir.path, 'key.pem');
    writeFileSync(keyFile, newKeyPem());
    witness = await startWitness('witness.example/w1');
  });
  afterEach(async () => {
    await service.stop();
    await witness.stop();
    dir.remove();
  });

  const serve = async (dataDir = dir.path): Promise<void> => {
    const { ledger } = readConfig(
      {
        CHECKPOINT_INTERVAL_S: '1',
        LEDGER_ORIGIN: 'example.com/council',
        LEDGER_KEY_FILE: keyFile,
        LEDGER_WITNESSES: 'witnesses',
      },
      () => `# ours\n${witness.vkey} ${witness.url}\n\n`,
    );
    service = await startService({ dataDir, ledger });
    rest = restClient(service.url);
  };
  const state = async (): Promise<LedgerState> => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
  const trusted = async (): Promise<void> => witness.trust(parseVkey((await state()).vkey ?? ''));
  const cosigned = (size: number): Promise<void> => untilTrue(async () => (await state()).witnesses[0]?.size === size);

  it('cosign each checkpoint, and a proof holds their cosignature', async () => {
    await serve();
    await trusted();
    const runs = [await rest.start()];
    await cosigned(1);
    runs.push(await rest.start(), await rest.start());
    await cosigned(3);
    expect(witness.seen.get('example.com/council')?.size).to.equal(3);
    const proof = (await rest.get(`/api/runs/${runs[0]}/proof`)).text;
    const keys = [parseVkey((await state()).vkey ?? ''), parseVkey(witness.vkey)];
    const { times } = openProof(proof, ...keys);
    expect(Math.abs(Date.now() / 1_000 - (times[0] ?? 0))).to.be.lessThan(60);
    expect((await rest.get('/ledger/checkpoint')).text).to.include('— witness.example/w1 ');

    await service.stop();
    await serve();
    expect((await state()).witnesses).to.have.lengthOf(1);
    expect((await state()).witnesses[0]).to.include({ name: 'witness.example/w1', size: 3 });
  });

  it('are demanded by verify-export, which takes the key of the ledger for none', async () => {
    const bench = councilBench();
    await serve();
    await trusted();
    const runId = await rest.start();
    await cosigned(1);
    const proof = bench.written('proof', (await rest.get(`/api/runs/${runId}/proof`)).text);
    const file = join(bench.path, 'run.ndjson');
    await bench.council(['export', runId, '--url', service.url, '--out', file]);
    const vkey = (await state()).vkey ?? '';
    const verify = (key: string) =>
      bench.council(['verify-export', file, '--proof', proof, '--vkey', vkey, '--witness', key]);
    const { stdout, code } = await verify(witness.vkey);
    expect(stdout).to.match(/^proven: .*, cosigned by witness\.example\/w1 at 20\d\d-\S+Z\n$/);
    expect(code).to.equal(0);
    const own = await verify(vkey);
    expect([own.code, own.stderr]).to.satisfy(
      ([status, said]: [number, string]) => status === 2 && said.includes('is no Ed25519 verifier key of type 4'),
    );
    const stranger = await startWitness('witness.example/w2');
    expect((await verify(stranger.vkey)).code).to.equal(1);
    await stranger.stop();
    await bench.clear();
  });

  it('that have seen another size than recorded are asked from there', async () => {
    await serve();
    await trusted();
    await rest.start();
    await cosigned(1);
    // It has cosigned, but the service has not recorded it: the witness forgets instead.
    witness.seen.set('example.com/council', { size: 0, root: Buffer.alloc(0) });
    await rest.start();
    await cosigned(2);
    expect(witness.statuses).to.deep.equal([200, 409, 200]);
  });

  it('refuse a checkpoint that is inconsistent with what they have seen', async () => {
    await serve();
    await trusted();
    await rest.start();
    await rest.start();
    await cosigned(2);
    const signer = noteSigner('example.com/council', readFileSync(keyFile, 'utf8'));
    const forged = (size: number): string =>
      signer.sign(checkpointText({ origin: 'example.com/council', size, root: leafHash(Buffer.from('forged')) }));
    expect(witness.add(`old 2\n\n${forged(2)}`).status, 'another root').to.equal(422);
    expect(witness.add(`old 2\n${Buffer.alloc(32).toString('base64')}\n\n${forged(3)}`).status).to.equal(422);
    expect(witness.add(`old 2\n\n${forged(1)}`).status, 'a smaller size').to.equal(400);
    expect(witness.add(`old 1\n\n${forged(3)}`), 'another old size').to.deep.equal({ status: 409, body: '2\n' });
    const thief = noteSigner('example.com/council', newKeyPem());
    const note = thief.sign(checkpointText({ origin: 'example.com/council', size: 3, root: Buffer.alloc(32) }));
    expect(witness.add(`old 2\n\n${note}`).status, vkeyText(thief.key)).to.equal(403);
  });

  it('have seen more leaves than an older copy has, which the service logs', async () => {
    const older = tempDir();
    await serve();
    await trusted();
    await service.stop();
    cpSync(dir.path, older.path, { recursive: true });
    await serve();
    await rest.start();
    await rest.start();
    await cosigned(2);
    await service.stop();
    await serve(older.path);
    await rest.start();
    const reasons = (): readonly string[] => service.faults.map((fault) => String(fieldOf(fault, 'err')));
    await untilTrue(async () => reasons().some((line) => line.includes('it has seen 2 leaves, and this ledger has 1')));
    await service.stop();
    older.remove();
  });

  it('that hang, refuse or are away delay neither runs nor checkpoints, nor the stop', async () => {
    await serve();
    await rest.start();
    await untilTrue(async () => (await state()).checkpoint?.size === 1);
    await untilTrue(async () => witness.statuses.includes(404));
    expect((await state()).witnesses).to.deep.equal([{ name: 'witness.example/w1', size: 0, at: null }]);
    await service.stop();
    witness.hang();
    await serve();
    const id = await rest.start();
    await untilTrue(async () => (await state()).checkpoint?.size === 2);
    expect((await rest.get(`/api/runs/${id}/proof`)).status).to.equal(200);
    const fromMs = performance.now();
    await service.stop();
    expect(performance.now() - fromMs).to.be.lessThan(5_000);
    await witness.stop();
    await serve();
    await rest.start();
    await untilTrue(async () => (await state()).checkpoint?.size === 3);
  });
});
