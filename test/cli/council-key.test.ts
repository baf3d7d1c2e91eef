import { expect } from 'chai';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench, resultIn } from '../support/council-command.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Scope } from '../../src/keys/caller.js';

describe('The council commands against a service with keys', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let keys: Readonly<Record<'ann' | 'eve', string>>;

  before(async () => {
    bench = councilBench();
    service = await startService();
    const added = async (name: string, scopes: readonly Scope[]): Promise<string> =>
      (await service.context.authenticator.keys.add({ name, scopes, expiresAt: null }, { actor: null })).text;
    keys = {
      ann: await added('ann', ['admin', 'read', 'run', 'approve', 'author']),
      eve: await added('eve', ['read']),
    };
  });
  after(async () => {
    await service.stop();
    await bench.clear();
  });

  const at = (): readonly string[] => ['--url', service.url];
  const withKey = (key: string): { readonly env: Readonly<Record<string, string>> } => ({ env: { COUNCIL_KEY: key } });

  it('send the key from COUNCIL_KEY over REST, sockets and event streams', async () => {
    const words = ['The sea', '--god', '--json', '--blueprint', bench.pair(), ...at()];
    const ended = await bench.run(words, { ...withKey(keys.ann), input: 'approve\napprove\n' });
    expect(ended.code, ended.stderr).to.equal(0);
    // Only the event stream of the run names this node.
    expect(ended.stderr).to.include('reader');
    const { run_id: runId } = resultIn(ended);
    for (const command of ['events', 'tail', 'state', 'draft', 'show', 'verify', 'export']) {
      const { code, stderr } = await bench.council([command, runId, ...at()], withKey(keys.eve));
      expect(code, stderr).to.equal(0);
    }
    const fork = ['fork', runId, '--at', '3', ...at()];
    expect((await bench.council(fork, withKey(keys.ann))).code).to.equal(0);
    const refused = await bench.council(fork, withKey(keys.eve));
    expect(refused.code).to.equal(2);
    expect(refused.stderr).to.equal('The key lacks the scope "run"\n');
  });

  it('report a missing key in one line and exit 2', async () => {
    const run = await bench.run(['The sea', ...at()]);
    const events = await bench.council(['events', '00000000-0000-4000-8000-000000000000', ...at()]);
    for (const { code, stdout, stderr } of [run, events]) {
      expect([code, stdout], stderr).to.deep.equal([2, '']);
      expect(stderr.trimEnd().split('\n')).to.have.lengthOf(1);
      expect(stderr).to.match(/^A key is required: .*COUNCIL_KEY/);
    }
  });
});
