import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { UnsentBytes } from '../../src/system/async/unsent-bytes.js';
import { nodeSystem } from '../../src/system/system.js';
import { compileChart } from '../../src/run/machine.js';
import type { RunState } from '../../src/run/state.js';
import { serveChannels } from '../../src/ws/upgrade.js';
import { NO_KEYS } from '../support/no-keys.js';
import { openChannel } from '../support/channel-client.js';
import { NO_LIMITS } from '../support/no-limits.js';
import { runRequest } from '../support/open-engine.js';

describe('A channel whose client does not read', () => {
  it('is closed with 4408 once more than 1 MiB is unsent', async () => {
    const requested = runRequest('11111111-1111-4111-8111-111111111111');
    const fact = { type: 'RunRequested' as const, data: requested, seq: 0, id: '', at: '', hash: '' };
    const { run } = compileChart(requested.graph).first(fact).context;
    let publish: (run: RunState) => void = () => undefined;
    const ended = new AbortController();
    const views = {
      watch: (_runId: string, watcher: { onState: (run: RunState) => void; signal: AbortSignal }) => {
        publish = watcher.onState;
        watcher.signal.addEventListener('abort', () => ended.abort());
        publish(run);
        return Promise.resolve(true);
      },
    };
    const server = createServer();
    const onFault = (error: unknown): never => expect.fail(String(error));
    const never = (): never => expect.fail('Nobody asked for the rich stream');
    const rich = { feed: { follow: never }, queries: { find: never }, tokens: { subscribe: never } };
    const system = nodeSystem();
    const channels = serveChannels(server, {
      views,
      ...rich,
      system,
      isOwnHost: () => true,
      corsOrigins: [],
      limits: NO_LIMITS,
      unsent: new UnsentBytes(),
      ...NO_KEYS,
      onFault,
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const channel = openChannel(`http://127.0.0.1:${port}`, '/ws/council/x');
    await channel.until((message) => message.event === 'connected');

    channel.socket.pause();
    const shown = { ...run.progress.shown, draft: 'x'.repeat(128 * 1024 - 2) };
    let pauses = 0;
    while (!ended.signal.aborted && pauses < 1_000) {
      pauses += 1;
      const pause = {
        number: pauses,
        nextNodes: ['n'],
        seq: pauses,
        pausedAt: '',
        decision: null,
        votes: [],
        votesCast: 0,
        escalatedTo: null,
      };
      publish({ ...run, phase: { status: 'paused', pause }, progress: { ...run.progress, shown } });
      await new Promise(setImmediate);
    }
    expect(ended.signal.aborted).to.equal(true);
    channel.socket.resume();
    expect(await channel.closed).to.equal(4408);
    const told = channel.told.filter((message) => message.event === 'run_paused');
    expect(told.length).to.be.greaterThan(0).and.at.most(pauses);

    await channels.stop();
    await new Promise((resolve) => server.close(resolve));
  });
});
