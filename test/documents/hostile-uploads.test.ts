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
import { IS_SOAK, soakIt } from '../support/soak.js';

const MUTATED = IS_SOAK ? 200 : 1;
/** All handmade PDFs, or only some that do not use up their time limit, which the tests of the extraction cover. */
const QUICK = ['inline image without end', 'fewer pages than none', 'no PDF'];
/** The time if both parsers use all their processor time. */
const VERDICT_MS = 30_000;
/** The time of an upload outside the extraction: sending the file and ending the child process. */
const SLACK_MS = IS_SOAK ? 1_000 : 30_000;
/** The memory that the service may use above its idle memory: files of at most 1 MB, and their text. */
const MAX_MEMORY_BYTES = 350 * 1024 * 1024;
/** The longest wait of other requests on an otherwise idle machine, as in a soak test. */
const MAX_OTHERS_MS = 50;

describe('Uploads of hostile PDFs', () => {
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

  soakIt('are answered in time, do not delay other requests, and leave no files', async () => {
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

/** The peak resident memory of a process in bytes, from `/proc`, or 0 on systems without it. */
function mostMemoryOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
