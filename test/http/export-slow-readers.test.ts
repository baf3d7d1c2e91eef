import { expect } from 'chai';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:http';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import { RUN_ID } from '../support/given.js';
import { LARGE_RUN_CHARS, recordLargeRun } from '../support/large-run.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { IS_SOAK } from '../support/soak.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;
const READERS = IS_SOAK ? 8 : 4;
/** The limit of memory growth while readers pause: each has requested 18 MB, and the service may read 1 MB ahead. */
const MAX_GROWTH_BYTES = READERS * 8e6;

onEmbeddedLog(() =>
  describe('Readers of a long export that pause', () => {
    let dir: TempDir;
    let service: ServiceProcess;

    before(async () => {
      dir = tempDir();
      await recordLargeRun(dir.path);
      service = await startServiceProcess(dir.path, { flags: ['--expose-gc', '--import', PROBE] });
    });
    after(async () => {
      await service.stop();
      dir.remove();
    });

    it('use no memory of the service for unread events, and miss none', async () => {
      const whole = await lengthOf(await exported());
      expect(whole).to.be.greaterThan(LARGE_RUN_CHARS);
      const before = await heapBytes();
      const readers = await Promise.all(Array.from({ length: READERS }, exported));
      // While one reader reads everything, the service has enough time to read ahead for the others.
      expect(await lengthOf(await exported())).to.equal(whole);
      expect((await heapBytes()) - before).to.be.below(MAX_GROWTH_BYTES);
      const lengths = await Promise.all(readers.map(lengthOf));
      expect(new Set(lengths)).to.deep.equal(new Set([whole]));
      expect((await heapBytes()) - before).to.be.below(MAX_GROWTH_BYTES);
    });

    /** Begins an export and reads only its beginning. */
    async function exported(): Promise<IncomingMessage> {
      const headers = { Accept: 'application/x-ndjson' };
      const request = get(`${service.url}/api/runs/${RUN_ID}/events`, { headers, agent: false });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      expect(response.statusCode).to.equal(200);
      return response;
    }

    /** The memory of the service's main thread after a garbage collection, on the heap and outside it. */
    async function heapBytes(): Promise<number> {
      const answered = once(service.child, 'message');
      service.child.send('memory');
      const errors: readonly unknown[] = await answered;
      return Number(errors[0]);
    }
  }),
);

async function lengthOf(response: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) length += chunk.length;
  return length;
}
