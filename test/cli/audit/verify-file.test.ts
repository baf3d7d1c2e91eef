import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { nodeSystem } from '../../../src/system/system.js';
import type { VerifyExportDeps } from '../../../src/cli/records/verification.js';
import { verifyExport } from '../../../src/cli/records/verification.js';
import { chartCache } from '../../../src/run/chart/machine.js';
import type { CouncilBench } from '../../support/council-command.js';
import { councilBench } from '../../support/council-command.js';
import { eventIn, readGolden } from '../../support/golden.js';
import { seededRandom } from '../../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
const DAMAGES = process.env['SOAK'] === undefined ? 400 : 20_000;
const deps = { machines: chartCache(), sha256: nodeSystem().sha256, head: null, recorded: null };

interface Damage {
  readonly name: string;
  readonly bytes: Buffer;
  /** The first changed line. */
  readonly at: number;
}

describe(`council verify on a file (SEED=${SEED})`, () => {
  let bench: CouncilBench;

  before(() => {
    bench = councilBench();
  });

  after(() => bench.clear());

  const histories = readGolden().filter(({ lines }) => isEnd(lines.at(-1) ?? ''));
  const bytesOf = (lines: readonly string[]): Buffer => Buffer.from(lines.map((line) => `${line}\n`).join(''));
  const verified = (bytes: Buffer, more: Partial<VerifyExportDeps> = {}) =>
    verifyExport(inPieces(bytes), { ...deps, ...more });
  const verify = async (bytes: Buffer, ...words: readonly string[]) => {
    const file = join(bench.path, 'run.ndjson');
    writeFileSync(file, bytes);
    return await bench.council(['verify', file, ...words], { env: { DATA_DIR: '/nowhere' } });
  };

  it('exits 0 for every golden history that has ended, as a file and as standard input', async () => {
    expect(histories.length).to.be.greaterThan(10);
    for (const { name, lines } of histories) {
      const found = await verified(bytesOf(lines));
      expect(found, name).to.deep.include({ isValid: true, events: lines.length, firstDifference: null });
    }
    const [{ lines } = { lines: [] }] = histories;
    const head = eventIn(lines.at(-1) ?? '').hash;
    const { runId } = eventIn(lines[0] ?? '').data as { readonly runId: string };
    const ended = await verify(bytesOf(lines), '--head', head.toUpperCase());
    expect(ended).to.deep.include({ code: 0, stderr: '' });
    expect(ended.stdout).to.equal(`consistent: ${lines.length} events\nrun   ${runId}\nhead  ${head}\n`);
    const piped = await bench.council(['verify', '-', '--json'], { input: bytesOf(lines).toString() });
    expect(JSON.parse(piped.stdout)).to.include({ run_id: runId, valid: true, head_hash: head });
  });

  it(`names the first difference of ${DAMAGES} files: flipped, dropped, swapped, doubled, cut`, async () => {
    const random = seededRandom(SEED);
    const kinds = new Map<string, number>();
    for (let count = 0; count < DAMAGES; count += 1) {
      const { lines } = histories[Math.floor(random() * histories.length)] ?? { lines: [] };
      const { name, bytes, at } = corrupted(lines, random);
      const found = await verified(bytes);
      expect(found.firstDifference?.seq, `damage ${count}, ${name} at ${at}: ${JSON.stringify(found)}`).to.equal(at);
      expect(found).to.include({ isValid: false, events: at });
      kinds.set(name, (kinds.get(name) ?? 0) + 1);
    }
    expect([...kinds.keys()]).to.have.members(['flipped', 'dropped', 'swapped', 'doubled', 'cut']);
  });

  it('exits 1 and names the event, for one damage of each kind', async () => {
    const [{ lines } = { lines: [] }] = histories;
    const random = seededRandom(SEED);
    const left = new Set(['flipped', 'dropped', 'swapped', 'doubled', 'cut']);
    while (left.size > 0) {
      const { name, bytes, at } = corrupted(lines, random);
      if (!left.delete(name)) continue;
      const ended = await verify(bytes);
      expect(ended, name).to.deep.include({ code: 1, stderr: '' });
      expect(ended.stdout, name).to.match(new RegExp(`^not consistent: event ${at}: `));
    }
  });

  it('exits 2 with the head for an export cut between events, and 1 with --head', async () => {
    const [{ lines } = { lines: [] }] = histories;
    const whole = eventIn(lines.at(-1) ?? '').hash;
    const cut = bytesOf(lines.slice(0, 4));
    const head = eventIn(lines[3] ?? '').hash;
    const unsure = await verify(cut);
    expect(unsure).to.deep.include({ code: 2, stderr: '' });
    expect(unsure.stdout)
      .to.match(/^cannot tell: /)
      .and.include(`\nhead  ${head}\n`);
    expect(JSON.parse((await verify(cut, '--json')).stdout)).to.include({ valid: null, events: 4, head_hash: head });
    const found = await verify(cut, '--head', whole);
    expect(found.code).to.equal(1);
    expect(found.stdout).to.match(/^not consistent: event 4: the record ends before it/);
    expect(await verify(cut, '--head', head)).to.include({ code: 0 });
    const longer = await verify(bytesOf(lines), '--head', head);
    expect(longer.code).to.equal(1);
    expect(longer.stdout).to.match(/^not consistent: event 4: it follows the event with the expected last hash/);
  });

  it('rejects every deviation from the bytes of an export', async () => {
    const [{ lines } = { lines: [] }] = histories;
    const text = bytesOf(lines).toString();
    const [first = '', second = ''] = lines;
    const spelt = JSON.stringify({ ...eventIn(second), seq: 1 });
    for (const [what, changed, at] of [
      ['a byte order mark', `\uFEFF${text}`, 0],
      ['lines ended as on Windows', text.replaceAll('\n', '\r\n'), 0],
      ['a last line without its end', text.slice(0, -1), lines.length - 1],
      ['an empty line at the end', `${text}\n`, lines.length],
      ['white space', text.replace('"at":', '"at": '), 0],
      ['another order of fields', text.replace(`${second}\n`, `${spelt}\n`), spelt === second ? -1 : 1],
      ['a field more', text.replace(`${second}\n`, `${second.slice(0, -1)},"z":1}\n`), 1],
      ['a field twice', text.replace(`${first}\n`, `${first.slice(0, -1)},"type":"RunRequested"}\n`), 0],
    ] as const) {
      const found = await verified(Buffer.from(changed));
      expect(found.firstDifference?.seq ?? -1, what).to.equal(at);
    }
    const split = Buffer.concat([bytesOf(lines.slice(0, 2)), Buffer.from([0xff, 0x0a])]);
    expect((await verified(split)).firstDifference).to.deep.equal({ seq: 2, what: 'its line is not UTF-8' });
    const endless = Buffer.concat([bytesOf(lines.slice(0, 1)), Buffer.alloc(9 * 1024 * 1024, 'x')]);
    expect((await verified(endless)).firstDifference?.what).to.include('longer than');
  });
});

function isEnd(line: string): boolean {
  return ['RunCompleted', 'RunFailed'].includes(eventIn(line).type);
}

/** The bytes in chunks that end anywhere, as from a pipe. */
async function* inPieces(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let from = 0; from < bytes.length; from += 777) yield bytes.subarray(from, from + 777);
}

function corrupted(lines: readonly string[], random: () => number): Damage {
  const at = Math.floor(random() * (lines.length - 1));
  const bytesOf = (changed: readonly string[]): Buffer => Buffer.from(changed.map((line) => `${line}\n`).join(''));
  const replaced = (...insteads: readonly string[]): Buffer =>
    bytesOf([...lines.slice(0, at), ...insteads, ...lines.slice(at + insteads.length)]);
  const [line = '', next = ''] = lines.slice(at);
  switch (Math.floor(random() * 5)) {
    case 0:
      return { name: 'flipped', bytes: flipped(lines, at, random), at };
    case 1:
      return { name: 'dropped', bytes: bytesOf(lines.filter((_, index) => index !== at)), at };
    case 2:
      return { name: 'swapped', bytes: replaced(next, line), at };
    case 3:
      return { name: 'doubled', bytes: bytesOf([...lines.slice(0, at), line, ...lines.slice(at)]), at: at + 1 };
    default: {
      const whole = bytesOf(lines.slice(0, at)).length;
      const length = 1 + Math.floor(random() * Buffer.byteLength(line));
      return { name: 'cut', bytes: bytesOf(lines).subarray(0, whole + length), at };
    }
  }
}

/** Flips one bit in the bytes of a line. */
function flipped(lines: readonly string[], at: number, random: () => number): Buffer {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  const start = Buffer.byteLength(
    lines
      .slice(0, at)
      .map((line) => `${line}\n`)
      .join(''),
  );
  const place = start + Math.floor(random() * Buffer.byteLength(lines[at] ?? ''));
  const bit = 1 << Math.floor(random() * 8);
  bytes[place] = (bytes[place] ?? 0) ^ bit;
  return bytes;
}
