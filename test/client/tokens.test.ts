import { expect } from 'chai';
import { getEventListeners } from 'node:events';
import { WebSocket } from 'ws';
import type { LiveMessage } from '../../src/client/client.js';
import { CouncilClient, NotFoundError, UnauthorizedError } from '../../src/client/client.js';
import { allOf } from '../support/all-of.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import type { CuttingProxy } from '../support/cutting-proxy.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import { graphOf } from '../support/given.js';
import { approveAll, pausedBefore, startGodRun } from '../support/god-run.js';
import { rejectionOf } from '../support/rejection.js';
import { NO_RUN } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { streamingModel } from '../support/streaming-model.js';
import { untilTrue } from '../support/until-true.js';

/** The bytes after which the proxy cuts a WebSocket: more than the handshake, fewer than the events after a decision. */
const PIECE_BYTES = 1_500;

describe("The client's tokens of a run", () => {
  let service: RunningService;
  /** The number of `connected` messages so far. */
  let connections = 0;
  let proxy: CuttingProxy | null = null;

  class CountedSocket extends WebSocket {
    constructor(url: string) {
      super(url);
      this.addEventListener('message', ({ data }) => {
        if (JSON.stringify(data).includes('connected')) connections += 1;
      });
    }
  }
  const clientOf = (url: string, key?: string): CouncilClient =>
    new CouncilClient({ url, key, webSocket: CountedSocket, system: systemWithoutBackoff() });

  beforeEach(async () => {
    [connections, proxy] = [0, null];
    service = await startService({ model: streamingModel(scriptedModel(councilScript([8]))) });
  });
  afterEach(async () => {
    await proxy?.close();
    await service.stop();
  });

  /** A paused run, and the messages after it continues. */
  const followed = async (
    client: CouncilClient,
  ): Promise<{ readonly id: string; readonly told: Promise<readonly LiveMessage[]> }> => {
    const id = await startGodRun(service.context, graphOf('write -> polish'));
    await pausedBefore(service.context, id, 'write');
    const told = allOf(client.run(id).tokens());
    await untilTrue(() => connections > 0);
    return { id, told };
  };

  it('build the drafts while models write them, from the connection to the end of the run', async () => {
    const { id, told } = await followed(clientOf(service.url));
    await approveAll(service.context, id);
    const drafts = new Map<string, string>();
    const started: string[] = [];
    for (const message of await told) {
      if (message.event === 'node_start') started.push(message.node);
      else drafts.set(message.node, (drafts.get(message.node) ?? '') + message.text);
    }
    expect(started).to.deep.equal(['write', 'polish']);
    expect(Object.fromEntries(drafts)).to.deep.equal({ write: 'Draft 1 by Write', polish: 'Draft 2 by Polish' });
    expect(await allOf(clientOf(service.url).run(id).tokens())).to.deep.equal([]);
  });

  it('continue over broken connections and report the start of each node once', async () => {
    proxy = await openCuttingProxy(service.url, () => PIECE_BYTES);
    const { id, told } = await followed(clientOf(proxy.url));
    await (await clientOf(service.url).run(id).pause())?.approve();
    await untilTrue(() => connections > 1);
    await approveAll(service.context, id);
    const started = (await told).filter(({ event }) => event === 'node_start').map(({ node }) => node);
    // The run may end while the connection is cut.
    expect(started).to.deep.equal(['write', 'polish'].slice(0, started.length)).and.include('write');
  });

  it('are sent to a client with a key, and refused with the reason without one', async () => {
    const { key } = await clientOf(service.url).keys.add({ name: 'ann', scopes: ['admin', 'read'] });
    const { id, told } = await followed(clientOf(service.url, key));
    await approveAll(service.context, id);
    expect(await told).to.not.deep.equal([]);
    const [stranger, ann] = [clientOf(service.url), clientOf(service.url, key)];
    expect(await rejectionOf(allOf(stranger.run(id).tokens()))).to.be.instanceOf(UnauthorizedError);
    expect(await rejectionOf(allOf(ann.run(NO_RUN).tokens()))).to.be.instanceOf(NotFoundError);
  });

  it('end when their signal aborts, and remove their listeners', async () => {
    const id = await startGodRun(service.context, graphOf('write'));
    const abort = new AbortController();
    const told = allOf(clientOf(service.url).run(id).tokens({ signal: abort.signal }));
    await untilTrue(() => connections > 0);
    abort.abort();
    expect(await told).to.deep.equal([]);
    expect(getEventListeners(abort.signal, 'abort')).to.deep.equal([]);
  });

  it('need a WebSocket, and throw an error that says so if none exists', () => {
    const own = Reflect.get(globalThis, 'WebSocket') as unknown;
    Reflect.set(globalThis, 'WebSocket', undefined);
    try {
      const run = new CouncilClient({ url: service.url }).run(NO_RUN);
      expect(() => run.tokens()).to.throw(TypeError, 'webSocket');
    } finally {
      Reflect.set(globalThis, 'WebSocket', own);
    }
  });
});
