import { expect } from 'chai';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import { restClient } from '../support/rest-client.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import { IS_SOAK } from '../support/soak.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;

const RUNS = IS_SOAK ? 1_000 : 100;
const MATERIAL_BYTES = 100_000;

describe(`The materials of ${RUNS} runs in flight`, () => {
  it('are in memory once for each run', async () => {
    let calls = 0;
    const silent = createServer(() => (calls += 1)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const dir = tempDir();
    const service = await startServiceProcess(dir.path, {
      flags: ['--expose-gc', '--import', PROBE],
      environment: {
        OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
        OPENAI_MODEL: 'silent',
        MAX_MODEL_CALLS: '4',
        MAX_ACTIVE_RUNS: `${RUNS + 4}`,
      },
    });
    try {
      const rest = restClient(service.url);
      const start = async (material: string): Promise<void> => {
        const reply = await rest.post('/api/councils/run', { input_topic: 'The lease', material });
        await rest.until(rest.read(reply, 202, 'run-start.json').run_id, ({ status }) => status === 'running');
      };
      // The calls in flight are those of the first runs: one model has at most three quarters of them.
      for (let run = 0; run < 4; run += 1) await start('');
      await untilTrue(() => calls === 3);
      const before = await reachableBytes(service);
      for (let run = 0; run < RUNS; run += 1) await start(`${run} `.padEnd(MATERIAL_BYTES, 'A clause of the lease. '));
      // The read models may still be reading the last ones.
      const added = async (): Promise<number> => (await reachableBytes(service)) - before;
      await untilTrue(async () => (await added()) < 1.5 * RUNS * MATERIAL_BYTES);
      expect(await added()).to.be.above(RUNS * MATERIAL_BYTES);
    } finally {
      await service.stop();
      silent.closeAllConnections();
      silent.close();
      dir.remove();
    }
  });
});

/** The heap and the buffers of a service after a collection. */
async function reachableBytes({ child }: ServiceProcess): Promise<number> {
  const answered = once(child, 'message');
  child.send('memory');
  const answer: readonly unknown[] = await answered;
  return Number(answer[0]);
}
