import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { leafEvent } from '../../src/ledger/events.js';
import { checkpointText, noteSigner } from '../../src/ledger/note.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import { isRecord } from '../../src/system/untrusted.js';
import type { ChildExit } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import { rejectionOf } from '../support/rejection.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { openProof, parseVkey, treeHash, leafHash } from './verifier.js';

const { sha256 } = nodeSystem();

interface Row {
  readonly position: number;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An attacker with the files of a stopped service. */
function attacker(folder: string) {
  const file = join(folder, 'log.sqlite');
  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const exec = (sql: string): void => {
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
  };
  const rows = (stream: string): readonly Row[] => {
    // A prepared statement keeps its file locked until it is collected, so a copy is read.
    const copy = mkdtempSync(join(tmpdir(), 'council-attack-'));
    for (const suffix of ['', '-wal'].filter((each) => existsSync(file + each)))
      cpSync(file + suffix, join(copy, `log${suffix}`));
    const database = new DatabaseSync(join(copy, 'log'));
    const sql = `SELECT e.* FROM events e JOIN streams s ON s.id = e.stream WHERE s.name = ${quoted(stream)} ORDER BY revision`;
    const found = database
      .prepare(sql)
      .all()
      .filter(isRecord)
      .map((row) => ({
        position: Number(row['position']),
        revision: Number(row['revision']),
        id: String(row['id']),
        type: String(row['type']),
        data: String(row['data']),
        metadata: JSON.parse(String(row['metadata'])) as Record<string, string>,
      }));
    database.close();
    rmSync(copy, { recursive: true });
    return found;
  };
  const write = ({ position, data, metadata }: Row): void =>
    exec(
      `UPDATE events SET data = ${quoted(data)}, metadata = ${quoted(JSON.stringify(metadata))} WHERE position = ${position}`,
    );
  /** Changes the data of a stream and computes its hash chain anew. Returns the new hash of its last event. */
  const rewrite = (stream: string, change: (data: string) => string): string => {
    let hash = '0'.repeat(64);
    for (const row of rows(stream)) {
      const data = change(row.data);
      const at = row.metadata['occurredAt'];
      const fields = { at, data: JSON.parse(data) as unknown, id: row.id, seq: row.revision, type: row.type };
      hash = sha256(hash + canonical(fields));
      write({ ...row, data: canonical(JSON.parse(data)), metadata: { ...row.metadata, hash } });
    }
    return hash;
  };
  const remove = (stream: string): void =>
    exec(`DELETE FROM events WHERE stream = (SELECT id FROM streams WHERE name = ${quoted(stream)});
      DELETE FROM streams WHERE name = ${quoted(stream)}`);
  const forgetViews = (): void => {
    for (const each of ['views', 'log.sqlite-head', 'log-seen'])
      rmSync(join(folder, each), { recursive: true, force: true });
  };
  return { exec, rows, write, rewrite, remove, forgetViews };
}

describe('An attacker with the files', function () {
  let bench: CouncilBench;
  let folder: string;
  let older: string;
  let runs: readonly string[];
  /** The run of the proof. */
  let proven: string;
  let vkey: string;
  let checkpoint: string;
  let proof: string;
  let copies = 0;

  const covered = async (service: RunningService, count: number): Promise<void> => {
    const rest = restClient(service.url);
    await untilTrue(
      async () => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json').checkpoint?.size === count,
    );
  };
  const serve = (dataDir: string): Promise<RunningService> =>
    startService({ dataDir, eventStore: null, ledger: LEDGER_AT_ONCE });
  const stolen = (): { path: string; attack: ReturnType<typeof attacker> } => {
    const path = bench.copied(folder, `copy-${(copies += 1)}`);
    return { path, attack: attacker(path) };
  };
  const check = (path: string, ...words: readonly string[]): Promise<ChildExit> =>
    bench.council(['check', ...words], { env: { DATA_DIR: path } });
  /** Checks that a checkpoint kept elsewhere finds the attack, at this size. */
  const expectFound = async (path: string, size: number, what: RegExp): Promise<void> => {
    const { code, stdout } = await check(path, '--checkpoint', checkpoint);
    expect(stdout)
      .to.match(what)
      .and.match(/^[^\n]+\n$/);
    expect(stdout).to.include(`it differs from size ${size} on`);
    expect(code).to.equal(1);
  };
  const refusal = async (path: string): Promise<string> => {
    const error = await rejectionOf(serve(path));
    expect(error).to.be.instanceOf(LogUnreadable);
    return String(error);
  };
  /** Checks that a service whose ledger contradicts its checkpoints gives no proof, and no hope for one. */
  const expectUnproven = async (rest: RestClient, runId: string): Promise<void> => {
    const reply = await rest.get(`/api/runs/${runId}/proof`);
    expect(rest.problem(reply, 409).detail).to.match(/: this service signs none: /);
    expect(reply.headers.get('Retry-After')).to.equal(null);
    const verification = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(verification.ledger?.covered).to.equal(false);
  };
  const exported = async (path: string, runId: string): Promise<string> => {
    const { stdout, code } = await bench.council(['export', runId], { env: { DATA_DIR: path } });
    expect(code).to.equal(0);
    return bench.written(`export-${(copies += 1)}.ndjson`, stdout);
  };
  const verifyExport = (file: string, ...words: readonly string[]): Promise<ChildExit> =>
    bench.council(['verify-export', file, '--proof', proof, ...words]);

  before(async () => {
    bench = councilBench();
    folder = join(bench.path, 'service');
    let service = await serve(folder);
    const first = [await restClient(service.url).start('Sea'), await restClient(service.url).start('Sun')];
    await covered(service, 2);
    await service.stop();
    older = bench.copied(folder, 'older');
    service = await serve(folder);
    const rest = restClient(service.url);
    const second = [await rest.start('Trees'), await rest.start('Towns')];
    await covered(service, 4);
    vkey = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json').vkey ?? '';
    checkpoint = bench.written('checkpoint', await (await fetch(`${service.url}/ledger/checkpoint`)).text());
    proven = second[0] ?? '';
    const text = (await rest.get(`/api/runs/${proven}/proof`)).text;
    proof = bench.written('run.tlog-proof', text);
    openProof(text, parseVkey(vkey));
    await service.stop();
    const ends = attacker(folder)
      .rows('ledger')
      .map(({ data }) => (JSON.parse(data) as { runId: string }).runId);
    runs = ends;
    expect([...first, ...second]).to.have.members(ends);
  });
  after(() => bench.clear());

  it('leaves nothing to find in an untouched copy, which the checkpoint confirms', async () => {
    const { path } = stolen();
    expect((await check(path)).stdout).to.include('The log is intact');
    const { code, stdout } = await check(path, '--checkpoint', checkpoint);
    expect(stdout).to.equal('The log contains all that the checkpoint of size 4 covers\n');
    expect(code).to.equal(0);
    expect(statSync(join(folder, 'ledger-key.pem')).mode & 0o777).to.equal(0o600);
    const file = await exported(path, proven);
    const found = await verifyExport(file, '--vkey', vkey);
    expect(found.stdout).to.match(/^proven: run [-0-9a-f]+, \d+ events, is leaf \d of council-run-service\//);
    expect(found.code).to.equal(0);
    expect((await verifyExport(file)).code, 'without a key').to.equal(2);
    const other = vkey.replace(/^[^+]+/, 'example.com/other');
    expect((await verifyExport(file, '--vkey', other)).code, 'a key with another id').to.equal(2);
  });

  it('who puts an older copy in place is found by a checkpoint kept elsewhere, and by nothing in the folder', async () => {
    await expectFound(older, 3, /the ledger has fewer leaves than the checkpoint covers \(4\)/);
    expect((await check(older)).code).to.equal(0);
    const path = bench.copied(older, 'older-served');
    await (await serve(path)).stop();
  });

  it('who rewrites a run with a new chain is found by the check, by verify and by the proof', async () => {
    const { path, attack } = stolen();
    const runId = proven;
    const index = runs.indexOf(runId);
    attack.rewrite(`run-${runId}`, (data) => data.replaceAll('Trees', 'Frees').replaceAll('Towns', 'Clowns'));
    attack.forgetViews();
    await expectFound(path, index + 1, new RegExp(`the record of run ${runId} is not the one in the ledger`));
    const { code, stdout } = await check(path);
    expect(stdout).to.include(`leaf ${index} of the ledger: the record of run ${runId} is not the one in the ledger`);
    expect(code).to.equal(1);
    const refused = await verifyExport(await exported(path, runId), '--vkey', vkey);
    expect(refused.stdout).to.equal('not proven: the export is another record of the run than the one in the ledger\n');
    expect(refused.code).to.equal(1);
    const service = await serve(path);
    const rest = restClient(service.url);
    const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(verified.valid).to.equal(false);
    expect(verified.first_difference?.what).to.equal('its last event has another hash than its leaf in the ledger');
    await service.stop();
  });

  it('who adds an erasure of a rewritten run, or of a document with the id of a run, is found by the check', async () => {
    const [runId = ''] = runs;
    const expectForged = async (what: 'run' | 'document', attacked: (attack: ReturnType<typeof attacker>) => void) => {
      const { path, attack } = stolen();
      attacked(attack);
      const log = await openEmbeddedLog({ file: join(path, 'log.sqlite') });
      const forged = { events: 1, headHash: '0'.repeat(64), erasedAt: nodeSystem().now(), reason: null, actor: null };
      const leaf = leafEvent({ kind: 'erasure', what, id: runId, ...forged }, nodeSystem(), `run-${runId}`);
      await log.append('ledger', [leaf], 3);
      await log.close();
      expect((await check(path)).stdout).to.match(/not the one in the ledger|is missing, and no leaf erases it/);
      await expectFound(path, 1, /not the one in the ledger|is missing, and no leaf erases it/);
    };
    const rewrite = (attack: ReturnType<typeof attacker>): void => {
      attack.rewrite(`run-${runId}`, (data) => data.replaceAll('Sea', 'Lea').replaceAll('Sun', 'Bun'));
      attack.forgetViews();
    };
    await expectForged('run', rewrite);
    await expectForged('document', rewrite);
    await expectForged('document', (attack) => {
      attack.remove(`run-${runId}`);
      attack.forgetViews();
    });
  });

  it('who also rewrites its leaf is refused by the start, unless new checkpoints are signed too', async () => {
    const { path, attack } = stolen();
    const runId = runs[1] ?? '';
    const hash = attack.rewrite(`run-${runId}`, (data) => data.replaceAll('Sea', 'Lea').replaceAll('Sun', 'Bun'));
    const leaf = attack.rows('ledger')[1];
    if (leaf === undefined) throw new Error('no leaf');
    attack.write({ ...leaf, data: leaf.data.replace(/"headHash":"\w+"/, `"headHash":"${hash}"`) });
    attack.forgetViews();
    await expectFound(path, 4, /the ledger has another root at size 4 than the checkpoint/);
    expect((await check(path)).stdout).to.match(/leaf 3 of the ledger: the ledger has another root at size 4/);
    expect(await refusal(path)).to.match(/another root at size 4 .*accept the loss/s);
    expect(await refusal(path), 'again').to.include('another root');

    // The thief of the key signs new checkpoints: nothing in the folder differs any more.
    const roots = attack
      .rows('ledger')
      .map((_, at, all) =>
        treeHash(all.slice(0, at + 1).map(({ data }) => leafHash(Buffer.from(canonical(JSON.parse(data)))))),
      );
    const origin = vkey.slice(0, vkey.indexOf('+'));
    const signer = noteSigner(origin, readFileSync(join(path, 'ledger-key.pem'), 'utf8'));
    attack.rewrite('checkpoints', (data) => {
      const size = Number((JSON.parse(data) as { note: string }).note.split('\n')[1]);
      const root = roots[size - 1] ?? Buffer.of();
      return JSON.stringify({ note: signer.sign(checkpointText({ origin, size, root })) });
    });
    expect((await check(path)).code).to.equal(0);
    await (await serve(path)).stop();
    await expectFound(path, 4, /the ledger has another root at size 4 than the checkpoint/);
  });

  it('who accepts the loss starts the service, which signs no checkpoint and says so', async () => {
    const { path, attack } = stolen();
    const [leaf] = attack.rows('ledger');
    if (leaf === undefined) throw new Error('no leaf');
    attack.write({ ...leaf, data: leaf.data.replace(/"events":\d+/, '"events":1') });
    expect(await refusal(path)).to.include('another root');
    expect((await check(path, '--accept-loss')).code).to.equal(0);
    const service = await serve(path);
    const rest = restClient(service.url);
    await rest.start('Fields');
    await untilTrue(async () => rest.read(await rest.get('/api/ledger'), 200, 'ledger.json').size === 5);
    const ready = rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    expect(ready.detail).to.match(/^No checkpoint of the ledger is signed: .*another root at size 4/);
    expect((await rest.get('/metrics')).text).to.match(/^council_ledger_contradicted 1$/m);
    await expectUnproven(rest, runs[2] ?? '');
    await service.stop();
    expect(attacker(path).rows('checkpoints')).to.have.lengthOf(attacker(folder).rows('checkpoints').length);
    await (await serve(path)).stop();
  });

  it('who cuts the end of the ledger is refused by the start', async () => {
    const { path, attack } = stolen();
    const last = attack.rows('ledger').at(-1);
    attack.exec(`DELETE FROM events WHERE position = ${last?.position}`);
    attack.forgetViews();
    await expectFound(path, 4, /the ledger has fewer leaves/);
    expect(await refusal(path)).to.match(/fewer leaves than the checkpoint covers \(4\)/);
    await check(path, '--accept-loss');
    const service = await serve(path);
    await expectUnproven(restClient(service.url), runs[0] ?? '');
    await service.stop();
  });

  it('who removes a run is found by the check', async () => {
    const { path, attack } = stolen();
    attack.remove(`run-${runs[0]}`);
    attack.forgetViews();
    await expectFound(path, 1, new RegExp(`the record of run ${runs[0]} is missing, and no leaf erases it`));
    expect((await check(path)).code).to.equal(1);
  });

  it('who swaps two runs is found by the check, and by the start if their leaves are swapped too', async () => {
    const { path, attack } = stolen();
    const [one = '', other = ''] = runs;
    const rename = (from: string, to: string): void =>
      attack.exec(`UPDATE streams SET name = 'run-${to}' WHERE name = 'run-${from}'`);
    rename(one, 'x');
    rename(other, one);
    rename('x', other);
    attack.forgetViews();
    await expectFound(path, 1, /is not the one in the ledger|is unreadable/);
    const [first, second] = attack.rows('ledger');
    if (first === undefined || second === undefined) throw new Error('no leaves');
    attack.write({ ...first, data: second.data });
    attack.write({ ...second, data: first.data });
    expect(await refusal(path)).to.include('another root at size 4');
  });

  it('who replaces the key is found by whoever kept the old one', async () => {
    const { path } = stolen();
    rmSync(join(path, 'ledger-key.pem'));
    const service = await serve(path);
    const rest = restClient(service.url);
    expect(service.lines.filter(({ msg }) => msg.includes('the key is not'))).to.have.lengthOf(1);
    await untilTrue(async () => {
      const { status, text } = await rest.get(`/api/runs/${runs[0]}/proof`);
      const now = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json').vkey ?? '';
      if (status !== 200) return false;
      try {
        openProof(text, parseVkey(now));
      } catch {
        return false;
      }
      expect(now).not.to.equal(vkey);
      expect(() => openProof(text, parseVkey(vkey))).to.throw('has not signed');
      return true;
    });
    const text = (await rest.get(`/api/runs/${runs[0]}/proof`)).text;
    await service.stop();
    const forged = bench.written('forged.tlog-proof', text);
    const file = await exported(path, runs[0] ?? '');
    const words = ['verify-export', file, '--proof', forged, '--vkey', vkey];
    const { code, stdout } = await bench.council(words);
    expect(stdout).to.match(/^not proven: the proof: it has no signature of the key/);
    expect(code).to.equal(1);
    cpSync(join(folder, 'ledger-key.pem'), join(path, 'ledger-key.pem'));
  });
});
