import { expect } from 'chai';
import OpenAI from 'openai';
import { changedLog } from '../support/changed-log.js';
import { openEventStream } from '../support/event-stream-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { openSharedLog } from '../support/shared-log.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

describe('A response on two instances of one log', () => {
  it('is read, streamed with the same numbers and seen cancelled at the other instance', async () => {
    const dir = tempDir();
    const shared = await openSharedLog(dir.path);
    const council = councilScript([8]);
    const scripted = scriptedModel((request, index) => (index === 0 || index > 2 ? 'hold' : council(request, index)));
    const open = (): Promise<RunningService> => {
      const { log } = shared.line();
      return startService({ model: scripted, decorate: (own) => changedLog(log, { close: () => own.close() }) });
    };
    const [here, there] = [await open(), await open()];
    try {
      const [one, other] = [clientOf(here), clientOf(there)];
      const { id } = await one.responses.create({ model: 'council', input: 'Oaks', background: true });
      const streams = [here, there].map(({ url }) => openEventStream(url, `/v1/responses/${id}?stream=true`));
      for (const stream of streams) await stream.until(({ event }) => event === 'response.in_progress');
      await untilTrue(() => scripted.held.length === 1);
      scripted.held[0]?.release();
      for (const stream of streams) expect(await stream.over).to.equal('ended');
      expect(streams[1]?.events).to.deep.equal(streams[0]?.events);
      expect((await other.responses.retrieve(id)).status).to.equal('completed');

      const { id: next } = await one.responses.create({ model: 'council', input: 'Elms', background: true });
      await untilTrue(() => scripted.held.length === 1);
      expect((await one.responses.cancel(next)).status).to.equal('cancelled');
      expect((await other.responses.retrieve(next)).status).to.equal('cancelled');
    } finally {
      await Promise.all([here.stop(), there.stop()]);
      await shared.close();
      dir.remove();
    }
  });
});

function clientOf({ url }: RunningService): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });
}
