import { expect } from 'chai';
import { join } from 'node:path';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { IdSecret } from '../../src/keys/id-secret.js';
import { keyedRunId } from '../../src/run/request.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

describe('The secret of a log', () => {
  let dir: TempDir;
  let log: EventLog;

  beforeEach(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
  });
  afterEach(async () => {
    await log.close();
    dir.remove();
  });

  const secretOn = (on: EventLog): IdSecret => new IdSecret({ log: on, system: nodeSystem(), instanceId: 'one' });

  it('is created once, with many instances at the same time', async () => {
    const instances = Array.from({ length: 20 }, () => secretOn(log));
    const secrets = await Promise.all(instances.flatMap((each) => [each.read(), each.read()]));
    expect(new Set(secrets).size).to.equal(1);
    expect(secrets[0]).to.match(/^[A-Za-z0-9_-]{43}$/);
    const types: string[] = [];
    for await (const { type } of log.readAll(null)) types.push(type);
    expect(types).to.deep.equal(['SecretCreated']);
  });

  it('is the same after a restart and on a copy of the log', async () => {
    const secret = await secretOn(log).read();
    await log.close();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
    expect(await secretOn(log).read()).to.equal(secret);
  });

  it('is read again after the log was unreachable', async () => {
    let isAway = true;
    const away = changedLog(log, {
      readStream: (stream, range) => {
        if (isAway) throw new LogUnavailable();
        return log.readStream(stream, range);
      },
    });
    const secret = secretOn(away);
    expect(await rejectionOf(secret.read())).to.be.instanceOf(LogUnavailable);
    isAway = false;
    expect(await secret.read()).to.equal(await secretOn(log).read());
  });

  it('gives other ids to the same Idempotency-Key on another log', () => {
    const { sha256 } = nodeSystem();
    const scope = { method: 'POST', path: '/api/councils/run', key: 'order-1\nann' };
    const ids = [null, 'a'.repeat(43), 'b'.repeat(43)].map((secret) => keyedRunId(scope, secret, sha256));
    expect(new Set(ids).size).to.equal(3);
    for (const id of ids) expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
