import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem } from '../../src/system/system.js';
import { readExport } from '../../src/audit/export.js';
import { verifyRecord } from '../../src/audit/verify.js';
import { chartCache } from '../../src/run/chart/machine.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const README = join(ROOT, 'src/http/README.md');
/** The events of a run as the events endpoint of this version returned them. Their head must never change. */
const GOLDEN = join(ROOT, 'test/golden/chain.ndjson');
const GOLDEN_RUN = '12b92509-23e8-4af9-961e-f45528b73e98';
const GOLDEN_HEAD = '23b997236f7c5e9a77b4743a53ad7a81c1a5e6683f137504229566fcbf11a6ce';

describe('The script of the README that checks a chain', () => {
  let dir: TempDir;
  let script: string;

  before(() => {
    dir = tempDir();
    script = join(dir.path, 'check-chain.mjs');
    const [, code = ''] = /```js\n(\/\/ node check-chain\.mjs[\s\S]*?)```/.exec(readFileSync(README, 'utf8')) ?? [];
    writeFileSync(script, code);
  });
  after(() => dir.remove());

  const check = (text: string): { readonly status: number | null; readonly out: string; readonly told: string } => {
    const file = join(dir.path, 'run.ndjson');
    writeFileSync(file, text);
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
    return { status, out: stdout, told: stderr };
  };

  it('computes the same head of the golden export as the service', async () => {
    const text = readFileSync(GOLDEN, 'utf8');
    expect(check(text)).to.include({ status: 0, out: `${GOLDEN_HEAD}\n` });
    const { sha256 } = nodeSystem();
    const events = readExport(GOLDEN_RUN, linesOf(text));
    const { firstDifference, headHash } = await verifyRecord(GOLDEN_RUN, events, { charts: chartCache(), sha256 });
    expect({ firstDifference, headHash }).to.deep.equal({ firstDifference: null, headHash: GOLDEN_HEAD });
  });

  it('computes the head of an export that verify returns', async () => {
    const service = await startService();
    const rest = restClient(service.url);
    const runId = await rest.start('Bäume, 木 and 🌳: "quoted"\n\u0000 at the end');
    await rest.until(runId, isOver);
    const headers = { Accept: 'application/x-ndjson' };
    const { text } = await rest.send('GET', `/api/runs/${runId}/events`, { headers });
    const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    await service.stop();
    expect(check(text)).to.include({ status: 0, out: `${verified.head_hash}\n` });
  });

  it('names the changed line of an export', () => {
    const lines = readFileSync(GOLDEN, 'utf8').split('\n').slice(0, -1);
    const asText = (changed: readonly string[]): string => changed.map((line) => `${line}\n`).join('');
    const changed = lines.map((line, index) => (index === 3 ? line.replace('"step":1', '"step":2') : line));
    for (const [text, line] of [
      [asText(changed), 4],
      [asText(lines.filter((_, index) => index !== 5)), 6],
      [asText([...lines.slice(1)]), 1],
    ] as const) {
      const { status, told } = check(text);
      expect(status).to.equal(1);
      expect(told).to.include(`breaks at line ${line}\n`);
    }
  });
});

async function* linesOf(text: string): AsyncIterable<string> {
  yield* text.split('\n').slice(0, -1);
}
