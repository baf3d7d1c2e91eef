import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import { childPids } from '../support/child-watch.js';
import { hostilePdfs, mutatedPdfs } from '../support/hostile-pdfs.js';
import { latencies } from '../support/latencies.js';
import { restClient } from '../support/rest-client.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { eventStoreEnvironment } from '../support/test-event-store.js';
import { idOf, upload } from '../support/upload-client.js';

const IS_SOAK = process.env['SOAK'] !== undefined;
const MUTATED = IS_SOAK ? 200 : 1;
/** Of those made by hand all, or some that are not worked on to the end of their time: that has a test beside the extraction. */
const QUICK = ['inline image without end', 'fewer pages than none', 'no PDF'];
/** Both parsers use all their processor time. */
const VERDICT_MS = 30_000;
/** From the verdict to its answer: the file's way in and the child's end. */
const SLACK_MS = IS_SOAK ? 1_000 : 30_000;
/** What the service may hold beside a process at rest: files of at most 1 MB, and their text. */
const MAX_MEMORY_BYTES = 350 * 1024 * 1024;
/** Others' waits on a machine that does nothing else, as for a soak. */
const MAX_OTHERS_MS = 50;

describe('Hostile PDFs, uploaded', () => {
  let dir: TempDir;
  let service: ServiceProcess;

  before(async () => {
    dir = tempDir();
    service = await startServiceProcess(dir.path, { environment: eventStoreEnvironment(dir.path) });
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  it('get their answer in time, while others are answered, and leave nothing', async () => {
    const files = [...hostilePdfs().filter(({ name }) => IS_SOAK || QUICK.includes(name)), ...mutatedPdfs(7, MUTATED)];
    const rest = restClient(service.url);
    const statuses = new Map<number, number>();
    const over = new AbortController();
    const others = latencies(() => rest.get('/api/health'), over.signal);
    for (const { name, bytes, reason } of files) {
      const from = performance.now();
      const reply = await upload(service.url, bytes, 'hostile.pdf');
      expect(performance.now() - from, name).to.be.below(VERDICT_MS + SLACK_MS);
      expect([200, 422, 503], `${name}: ${reply.status} ${reply.text}`).to.include(reply.status);
      if (reason !== undefined) expect(reply.status, name).to.equal(422);
      const shown = await rest.get(`/api/documents/${idOf(bytes)}`);
      expect(shown.status, name).to.equal(reply.status === 200 ? 200 : 404);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    }
    over.abort();
    const waited = await others;
    const p99 = quantile(waited, 0.99);
    const memory = mostMemoryOf(service.pid);
    if (IS_SOAK) {
      const counts = [...statuses].map(([status, count]) => `${count} answered ${status}`).join(', ');
      const figures = `p99 of others ${p99.toFixed(1)} ms, most memory ${Math.round(memory / 1_048_576)} MB`;
      process.stdout.write(`    ${files.length} files: ${counts}; ${figures}\n`);
    }
    expect(statuses.get(422)).to.be.greaterThan(0);
    if (IS_SOAK) expect(p99).to.be.below(MAX_OTHERS_MS);
    expect(memory).to.be.below(MAX_MEMORY_BYTES);
    expect(readdirSync(join(dir.path, 'tmp'))).to.deep.equal([]);
    expect(childPids(service.pid)).to.deep.equal([]);
  });
});

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? 0;
}

/** Most resident memory a process has had, in bytes, where the system tells (`/proc`); zero where not. */
function mostMemoryOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
