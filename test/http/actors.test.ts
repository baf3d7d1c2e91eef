import { expect } from 'chai';
import type { Scope } from '../../src/generated/schemas.js';
import { pausedBefore } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { factsOf, recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const SCOPES: readonly Scope[] = ['read', 'run', 'approve', 'author'];
const BLUEPRINT = { name: 'Line', nodes: [{ id: 'one' }, { id: 'two' }], edges: [{ source: 'one', target: 'two' }] };

describe('With keys, who did it', () => {
  let service: RunningService;
  let ann: RestClient;
  let ben: RestClient;
  let path: string;

  before(async () => {
    service = await startService({ model: instantModel() });
    const first = restWith(service.url, await addFirstKey(service.url));
    const clientOf = async (name: string): Promise<RestClient> =>
      restWith(service.url, await addKey(first, { name, scopes: SCOPES }));
    [ann, ben] = [await clientOf('ann'), await clientOf('ben')];
    const { id } = ann.read(await ann.post('/api/councils/', BLUEPRINT), 201, 'blueprint.json');
    path = `/api/councils/${id}`;
  });
  after(() => service.stop());

  const started = async (by: RestClient): Promise<string> => {
    const body = { input_topic: 'The sea', god_mode: true, actor: 'eve' };
    const { run_id: runId } = by.read(await by.post(`${path}/run`, body), 202, 'run-start.json');
    await pausedBefore(service.context, runId, 'one');
    return runId;
  };

  it('is the name of the key, whatever a body says', async () => {
    const runId = await started(ann);
    expect(ann.read(await ann.get(`/api/runs/${runId}`), 200, 'history-record.json')).to.include({ actor: 'ann' });
    const decision = { action: 'reject', comment: 'No.', actor: 'eve' };
    ben.read(await ben.post(`/api/councils/run/${runId}/approve`, decision), 200, 'run-result.json');
    const told = ann.read(await ann.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    expect(told.actor).to.equal('ann');
    expect(told.decisions[0]).to.include({ actor: 'ben', comment: 'No.' });
  });

  it('is recorded with a fork and a cancel', async () => {
    const runId = await started(ann);
    const forked = await ben.post(`/api/runs/${runId}/fork`, { at: 0, actor: 'eve' });
    const { run_id: forkId } = ben.read(forked, 202, 'run-start.json');
    ben.read(await ben.post(`/api/councils/run/${runId}/cancel`, { actor: 'eve' }), 200, 'run-result.json');
    const { log } = service.context;
    expect(factsOf(await recordOf(log, forkId), 'RunRequested')[0]).to.include({ actor: 'ben' });
    expect(factsOf(await recordOf(log, runId), 'RunFailed')[0]).to.include({ kind: 'cancelled', actor: 'ben' });
  });
});
