import { expect } from 'chai';
import { ConfigInvalid } from '../../src/errors.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

describe('The start of a service on an address that is not loopback', () => {
  let dir: TempDir;
  let service: RunningService | null = null;

  const start = async (settings: { readonly host: string; readonly auth?: 'on' | 'off' }): Promise<RunningService> => {
    service = await startService({ model: scriptedModel(), dataDir: dir.path, ...settings });
    return service;
  };
  beforeEach(() => {
    dir = tempDir();
  });
  afterEach(async () => {
    await service?.stop();
    service = null;
    dir.remove();
  });

  it('fails without keys, with one line that says what to do', async () => {
    const error = await rejectionOf(start({ host: '0.0.0.0' }));
    expect(error).to.be.instanceOf(ConfigInvalid);
    expect(String(error)).to.include('HOST="0.0.0.0"').and.include('AUTH=off').and.include('council keys add');
    expect(String(error)).not.to.include('\n');
  });

  it('succeeds with AUTH=off, and warns once', async () => {
    const { lines } = await start({ host: '0.0.0.0', auth: 'off' });
    const warnings = lines.map(({ msg }) => msg).filter((msg) => msg.includes('AUTH'));
    expect(warnings).to.deep.equal(['AUTH=off: every client that reaches 0.0.0.0 may do everything without a key']);
  });

  it('succeeds with a key, and requests need the key with AUTH on and off', async () => {
    const { url } = await start({ host: '127.0.0.1' });
    const body = JSON.stringify({ name: 'ann', scopes: ['admin'] });
    const added = await fetch(`${url}/api/keys`, {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    expect(added.status).to.equal(201);
    for (const auth of ['on', 'off'] as const) {
      await service?.stop();
      const { url: anywhere, lines } = await start({ host: '0.0.0.0', auth });
      const answer = await fetch(`${anywhere.replace('0.0.0.0', '127.0.0.1')}/api/runs`);
      expect(answer.status).to.equal(401);
      expect(lines.filter(({ msg }) => msg.includes('AUTH'))).to.have.length(auth === 'off' ? 1 : 0);
    }
  });
});
