import { expect } from 'chai';
import type { EventStreamClient } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

/** Places of a kind of stream. */
const PLACES = 100;

describe('One key that opens as many streams as it can', () => {
  let service: RunningService;
  let cheap: string;
  let root: string;
  const open: EventStreamClient[] = [];

  before(async () => {
    service = await startService();
    root = await addFirstKey(service.url);
    cheap = await addKey(restWith(service.url, root), { name: 'cheap', scopes: ['read'] });
  });
  afterEach(() => {
    for (const stream of open.splice(0)) stream.leave();
  });
  after(() => service.stop());

  for (const path of ['/api/feed?from=head', '/api/approvals/stream']) {
    it(`leaves places for other keys at ${path}`, async () => {
      const opened = async (key: string): Promise<number> => {
        const stream = openEventStream(service.url, path, bearer(key));
        open.push(stream);
        return (await stream.answered).status;
      };
      const statuses = await Promise.all(Array.from({ length: PLACES }, () => opened(cheap)));
      expect(statuses.filter((status) => status === 200)).to.have.length(PLACES / 2);
      expect(statuses.filter((status) => status === 503)).to.have.length(PLACES / 2);
      expect(await opened(root)).to.equal(200);
    });
  }
});
