import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import type { ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { sendUnaryData, ServerWritableStream } from '@grpc/grpc-js';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventStoreOptions } from '../../src/eventlog/eventstoredb/log.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { heldDeadline } from './eventstoredb-bench.js';
import { gossipAnswer } from '../support/event-store-messages.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { CERTIFICATE, PRIVATE_KEY } from '../support/test-certificate.js';

describe('EventStoreDB log: over TLS', () => {
  /** Headers of each call, in order. */
  const seen: Record<string, unknown>[] = [];
  const logs: EventLog[] = [];
  const server = new Server();
  let dir: TempDir;
  let node: string;
  let authority: string;

  before(async () => {
    dir = tempDir();
    authority = join(dir.path, 'ca.crt');
    writeFileSync(authority, CERTIFICATE);
    server.addService(StreamsService, {
      read(call: ServerWritableStream<ReadReq, ReadResp>) {
        seen.push(call.metadata.getMap());
        call.end();
      },
    });
    server.addService(GossipService, {
      read(_call: unknown, answer: sendUnaryData<ClusterInfo>) {
        const cluster = gossipAnswer([{ port: Number(node.split(':')[1]), isLeader: true }]);
        cluster.getMembersList()[0]?.getHttpEndPoint()?.setAddress('localhost');
        answer(null, cluster);
      },
    });
    const pair = { cert_chain: Buffer.from(CERTIFICATE), private_key: Buffer.from(PRIVATE_KEY) };
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('localhost:0', ServerCredentials.createSsl(null, [pair]), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    node = `localhost:${port}`;
  });
  after(async () => {
    await Promise.all(logs.map((log) => log.close()));
    server.forceShutdown();
    dir.remove();
  });

  const open = (hosts: string, options: string, system: EventStoreOptions['system'] = nodeSystem()): EventLog => {
    const log = openEventStoreLog({ url: `esdb://me:a%40b@${hosts}?${options}`, system });
    logs.push(log);
    return log;
  };

  it('sends user and password, and asks for the leader', async () => {
    await open(node, `tlsCAFile=${authority}`).ping();
    const authorization = `Basic ${Buffer.from('me:a@b').toString('base64')}`;
    expect(seen.at(-1)).to.include({ authorization, 'requires-leader': 'true' });
  });

  it('finds the leader of a cluster', async () => {
    await open(`${node},${node}`, `tlsCAFile=${authority}`).ping();
  });

  it('reports an untrusted certificate', async () => {
    const deadline = heldDeadline(() => setImmediate(() => deadline.pass()));
    const error = await rejectionOf(open(node, 'tls=true', deadline.system).ping());
    expect(error).to.be.instanceOf(LogUnavailable);
    expect(inspect(error, { depth: 9 })).to.match(/self-signed certificate/);
  });
});
