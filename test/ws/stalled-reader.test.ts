import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { openChannel } from '../support/channel-client.js';
import { recordOf } from '../support/record-of.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

/** How long a slow reader may take to receive the close frame, in milliseconds. */
const FAREWELL_MS = 2_000;
/** 24 MB, because a loopback connection holds some MB in transit. */
const NODES = 200;
const DRAFT = 'x'.repeat(120_000);

describe('A reader that has stalled past 1 MiB of unsent data', () => {
  soakIt('reads 4408 if it reads again within 2 s, else 1006, and resumes without a gap either way', async () => {
    const real = nodeSystem();
    const farewells: (() => void)[] = [];
    const after = (ms: number, callBack: () => void): (() => void) => {
      if (ms !== FAREWELL_MS) return real.after(ms, callBack);
      farewells.push(callBack);
      return () => undefined;
    };
    let stall = (): void => undefined;
    const stalled = new Promise<void>((resolve) => (stall = resolve));
    const answer = { text: DRAFT, usage: { inputTokens: 10, outputTokens: 10 } };
    const model = { provider: 'wordy', defaultModel: 'wordy', ask: () => stalled.then(() => answer) };
    const service = await startService({ model, system: { ...real, after } });
    try {
      const rest = restClient(service.url);
      const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `n${index}` }));
      const edges = nodes.slice(1).map(({ id }, index) => ({ source: `n${index}`, target: id }));
      const saved = await rest.post('/api/councils/', { id: 'long', name: 'Long', nodes, edges });
      expect(saved.status).to.equal(201);
      const started = await rest.post('/api/councils/long/run', { input_topic: 'Trees' });
      const { run_id: runId } = rest.read(started, 202, 'run-start.json');
      const path = `/ws/council/${runId}?events=all`;
      const [again, never] = [openChannel(service.url, path), openChannel(service.url, path)];
      for (const { socket, until } of [again, never]) {
        await until(({ event }) => event === 'node_start');
        socket.pause();
      }
      const before = farewells.length;
      stall();
      await rest.until(runId, isOver);
      await untilTrue(() => farewells.length === before + 2);
      again.socket.resume();
      expect(await again.closed).to.equal(4408);
      for (const farewell of farewells) farewell();
      never.socket.resume();
      expect(await never.closed).to.equal(1006);

      const record = await recordOf(service.context.log, runId);
      for (const { messages } of [again, never]) {
        const told = messages.filter(({ event }) => event === 'run_event').map(({ seq }) => Number(seq));
        const resumed = openChannel(service.url, `${path}&from=${told.at(-1) ?? -1}`);
        expect(await resumed.closed).to.equal(1000);
        const later = resumed.messages.filter(({ event }) => event === 'run_event').map(({ seq }) => Number(seq));
        expect([...told, ...later]).to.deep.equal(record.map(({ seq }) => seq));
      }
    } finally {
      await service.stop();
    }
  });
});
