import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { queueEarlyRequests } from '../../src/app/early-requests.js';
import { nodeSystem } from '../../src/system/system.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { untilTrue } from '../support/until-true.js';

const SENT = 3_000;
const MAX_QUEUED = 1_000;

describe('A server before its context is created', () => {
  it('queues at most 1,000 requests, even if one connection sends more', async () => {
    let seen = 0;
    const server = createServer().on('request', () => (seen += 1));
    const earlyRequests = queueEarlyRequests(server, {
      system: nodeSystem(),
      unsent: new SharedBytes(),
      basePath: '',
      corsOrigins: [],
      problemForms: [],
      isOwnHost: () => true,
      onFault: () => expect.fail('Nothing fails'),
      onAccessRefused: () => expect.fail('Nothing is refused'),
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(SENT));
      await untilTrue(() => seen > MAX_QUEUED);
      let served = 0;
      server.on('request', () => (served += 1));
      earlyRequests.end();
      expect(served).to.equal(MAX_QUEUED);
    } finally {
      client.destroy();
      server.close();
    }
  });
});
