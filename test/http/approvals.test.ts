import { expect } from 'chai';
import type { Approvals, Blueprint, GodModeState, RunResult, Scope } from '../../src/generated/schemas.js';
import { pausedBefore, approvePath, stateOf } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const NODES = [{ id: 'one' }, { id: 'two' }];
const EDGES = [{ source: 'one', target: 'two' }];

async function saved(rest: RestClient, approvals?: Approvals, more: object = {}): Promise<Blueprint> {
  const body = { name: 'Line', nodes: NODES, edges: EDGES, ...(approvals !== undefined && { approvals }), ...more };
  return rest.read(await rest.post('/api/councils/', body), 201, 'blueprint.json');
}

describe('Approvals of a blueprint', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: instantModel() });
    rest = restClient(service.url);
  });
  after(() => service.stop());

  const all: Approvals = {
    by: ['ann', 'scope:approve'],
    not_by_starter: true,
    quorum: 2,
    deadline: { after_ms: 60_000, then: { escalate: ['eve', 'zoe'] } },
  };

  it('are saved as they are sent, of nodes too, and kept by an update that does not name them', async () => {
    const nodes = [{ id: 'one', approvals: { quorum: 3 } }, { id: 'two' }];
    const { id, ...blueprint } = await saved(rest, all, { nodes });
    expect(blueprint.approvals).to.deep.equal(all);
    expect(blueprint.nodes.map(({ approvals }) => approvals)).to.deep.equal([{ quorum: 3 }, undefined]);
    const path = `/api/councils/${id}`;
    const renamed = rest.read(await rest.send('PUT', path, { body: { name: 'New' } }), 200, 'blueprint.json');
    expect(renamed).to.deep.include({ name: 'New', approvals: all });
    const lifted = rest.read(await rest.send('PUT', path, { body: { approvals: {} } }), 200, 'blueprint.json');
    expect(lifted.approvals).to.deep.equal({});
    expect(rest.read(await rest.get(path), 200, 'blueprint.json')).to.deep.equal(lifted);
    expect((await saved(rest)).approvals).to.equal(undefined);
  });

  it('are refused with 422 if their shape is wrong or a field is unknown', async () => {
    const wrong: readonly unknown[] = [
      ...['ann', { by: [] }, { not_by_starter: 'yes' }, { quorum: 0 }, { quorom: 2 }, { deadline: { after_ms: 5 } }],
      ...[{ deadline: { after_ms: 0, then: 'reject' } }, { deadline: { after_ms: 5, then: { escalate: [] } } }],
    ];
    for (const approvals of wrong) {
      for (const body of [{ nodes: NODES, approvals }, { nodes: [{ id: 'one', approvals }] }]) {
        const reply = await rest.post('/api/councils/', { name: 'Wrong', ...body });
        rest.problem(reply, 422);
      }
    }
  });

  it('get a warning when no approver can satisfy them', async () => {
    const few = await saved(rest, { by: ['ann'], quorum: 2 });
    expect(few.warnings.map(({ path }) => path)).to.deep.equal(['approvals', 'approvals']);
    expect(few.warnings[0]?.message).to.include('has no keys');
    expect(few.warnings[1]?.message).to.include('names fewer');
    const by = ['ann', 'scope:aprove', 'scope:approve'];
    const deadline: Approvals['deadline'] = { after_ms: 5, then: { escalate: ['Eve Adams'] } };
    const odd = (await saved(rest, { by, deadline })).warnings.map(({ message }) => message);
    expect(odd.filter((message) => message.includes('neither a valid name of a key nor a scope'))).to.have.lengthOf(2);
    expect(odd.join()).to.include('"scope:aprove"').and.to.include('"Eve Adams"');
    const nodes = [
      { id: 'one', approvals: { not_by_starter: true } },
      { id: 'two', approvals: {} },
    ];
    const reply = await rest.post('/api/councils/validate', { name: 'Line', nodes, edges: EDGES });
    const { valid, warnings } = rest.read(reply, 200, 'blueprint-validation.json');
    expect(valid).to.equal(true);
    expect(warnings.map(({ path }) => path)).to.deep.equal(['nodes[0].approvals']);
    expect((await saved(rest, { deadline: { after_ms: 60_000, then: 'reject' } })).warnings).to.deep.equal([]);
  });

  it('get a warning when their deadline approves sooner than a minute after the pause', async () => {
    const warningsOf = async (then: 'approve' | 'reject', afterMs: number): Promise<readonly string[]> =>
      (await saved(rest, { deadline: { after_ms: afterMs, then } })).warnings.map(({ message }) => message);
    expect(await warningsOf('approve', 59_999)).to.deep.equal([
      'Its deadline approves after 59999 ms, sooner than a person can read the draft',
    ]);
    for (const [then, afterMs] of [
      ['approve', 60_000],
      ['reject', 1],
    ] as const)
      expect(await warningsOf(then, afterMs)).to.deep.equal([]);
  });

  it('that need names make a service without keys answer 403 and keep the pause open', async () => {
    const { id } = await saved(rest, { by: ['ann'] });
    const started = await rest.post(`/api/councils/${id}/run`, { input_topic: 'The sea', god_mode: true });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    await pausedBefore(service.context, runId, 'one');
    for (const action of ['approve', 'reject']) {
      const { detail } = rest.problem(await rest.post(approvePath(runId), { action, expected_seq: 99 }), 403);
      expect(detail).to.include('the service has no keys');
    }
    expect(await stateOf(rest, runId)).to.deep.include({
      paused: true,
      approvals: { by: ['ann'], not_by_starter: false, quorum: 1, deadline: null, votes: [], may_decide: false },
    });
  });
});

describe('A pause with a deadline', () => {
  it('shows the deadline, ends at it, and accepts a decision before it', async () => {
    const service = await startService({ model: instantModel() });
    const rest = restClient(service.url);
    const started = async (afterMs: number): Promise<string> => {
      const { id } = await saved(rest, { deadline: { after_ms: afterMs, then: 'reject' } });
      const reply = await rest.post(`/api/councils/${id}/run`, { input_topic: 'The sea', god_mode: true });
      return rest.read(reply, 202, 'run-start.json').run_id;
    };
    const [long, short] = [await started(3_600_000), await started(1)];
    const failed = await rest.until(short, isOver);
    expect(failed).to.include({ status: 'failed', error: 'Rejected in God Mode: nobody decided within 1 ms' });
    const { approvals, paused_at: pausedAt } = await stateOf(rest, long);
    expect(approvals).to.include({
      deadline: new Date(Date.parse(pausedAt ?? '') + 3_600_000).toISOString(),
      deadline_then: 'reject',
      may_decide: true,
    });
    const reply = await rest.post(approvePath(long), { action: 'approve' });
    expect(rest.read(reply, 200, 'run-result.json').status).to.equal('running');
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });
});

describe('A pause that asks for approvers', () => {
  let service: RunningService;
  let rest: RestClient;
  let by: Readonly<Record<'ann' | 'ben' | 'eve', RestClient>>;

  before(async () => {
    service = await startService({ model: instantModel() });
    rest = restWith(service.url, await addFirstKey(service.url));
    const approver = async (name: string, ...more: readonly Scope[]): Promise<RestClient> =>
      restWith(service.url, await addKey(rest, { name, scopes: ['read', 'run', 'approve', ...more] }));
    by = { ann: await approver('ann'), ben: await approver('ben'), eve: await approver('eve', 'audit') };
  });
  after(async () => {
    await service.stop();
    expect(service.faults).to.deep.equal([]);
  });

  const startedBy = async (client: RestClient, approvals: Approvals): Promise<string> => {
    const { id, warnings } = await saved(rest, approvals);
    expect(warnings).to.deep.equal([]);
    const reply = await client.post(`/api/councils/${id}/run`, { input_topic: 'The sea', god_mode: true });
    const { run_id: runId } = client.read(reply, 202, 'run-start.json');
    await pausedBefore(service.context, runId, 'one');
    return runId;
  };
  const send = (client: RestClient, runId: string, body: object, headers = {}): Promise<Reply> =>
    client.post(approvePath(runId), body, headers);
  const said = async (client: RestClient, runId: string, body: object): Promise<RunResult['status']> =>
    client.read(await send(client, runId, body), 200, 'run-result.json').status;
  const approvalsOf = async (client: RestClient, runId: string): Promise<GodModeState['approvals']> =>
    (await stateOf(client, runId)).approvals;
  const approve = { action: 'approve' };

  it('answers 403 to other callers, after the pause check and before expected_seq', async () => {
    const runId = await startedBy(by.ann, { by: ['ben', 'scope:audit'], not_by_starter: true });
    const { detail } = by.ann.problem(await send(by.ann, runId, { ...approve, expected_seq: 99 }), 403);
    expect(detail).to.include('"ann" is not among its approvers: ben, scope:audit');
    expect(await approvalsOf(by.ann, runId)).to.include({ may_decide: false, not_by_starter: true });
    expect(await approvalsOf(by.ben, runId)).to.include({ may_decide: true });
    by.ben.problem(await send(by.ben, runId, { ...approve, expected_seq: 99 }), 409);
    by.eve.problem(await send(by.eve, runId, { action: 'dance' }), 422);
    expect(await said(by.eve, runId, approve)).to.equal('running');
    await pausedBefore(service.context, runId, 'two');
    expect(await said(by.ben, runId, { action: 'reject' })).to.equal('failed');
    by.ann.problem(await send(by.ann, runId, approve), 400);
    expect(await stateOf(by.ann, runId)).not.to.have.property('approvals');
    const decided = factsOf(await checkRecord(service.context.log, runId), 'GateDecided');
    expect(decided.map(({ actor }) => actor)).to.deep.equal(['eve', 'ben']);
  });

  it('stays paused until enough approvers agree, and shows the votes', async () => {
    const runId = await startedBy(by.ann, { quorum: 2 });
    const before = await stateOf(by.ann, runId);
    expect(await said(by.ann, runId, { ...approve, comment: 'Fine.', expected_seq: before.seq })).to.equal('paused');
    expect(await said(by.ann, runId, approve)).to.equal('paused');
    const { approvals, seq } = await stateOf(by.ben, runId);
    expect(seq).to.equal(before.seq);
    const [vote] = approvals?.votes ?? [];
    expect(approvals?.votes).to.have.lengthOf(1);
    expect(vote).to.include({ actor: 'ann', action: 'approve', comment: 'Fine.' });
    expect(await by.ben.poll(runId)).to.include({ status: 'paused', paused: true });
    expect(await said(by.ben, runId, { ...approve, expected_seq: seq })).to.equal('running');
    await pausedBefore(service.context, runId, 'two');
    const events = await checkRecord(service.context.log, runId);
    expect(factsOf(events, 'VoteCast')).to.have.lengthOf(1);
    expect(factsOf(events, 'VoteCast')[0]).to.include({
      gate: 1,
      actor: 'ann',
      comment: 'Fine.',
      shownDraftHash: null,
    });
    expect(factsOf(events, 'GateDecided').map(({ actor }) => actor)).to.deep.equal(['ben']);
    const told = by.ann.read(await by.ann.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(told.valid).to.equal(true);
  });

  it('counts a vote once under its Idempotency-Key, each approver with keys of their own', async () => {
    const runId = await startedBy(by.ann, { quorum: 3 });
    const key = { 'Idempotency-Key': 'k' };
    const voted = async (client: RestClient): Promise<string> =>
      client.read(await send(client, runId, approve, key), 200, 'run-result.json').status;
    for (const client of [by.ann, by.ann, by.ben, by.ann]) expect(await voted(client)).to.equal('paused');
    by.ann.problem(await send(by.ann, runId, { action: 'reject' }, key), 409);
    expect((await approvalsOf(by.ann, runId))?.votes).to.have.lengthOf(2);
    expect(await voted(by.eve)).to.equal('running');
    expect(await voted(by.eve)).to.equal('running');
    expect(await voted(by.ann)).to.equal('paused');
  });

  it('lets no starter of a run decide its forks, and the inbox of a starter leaves them out', async () => {
    const runId = await startedBy(by.ann, { not_by_starter: true });
    const forked = async (client: RestClient, parent: string): Promise<string> => {
      const reply = await client.post(`/api/runs/${parent}/fork`, { at: 0 });
      const fork = client.read(reply, 202, 'run-start.json').run_id;
      await pausedBefore(service.context, fork, 'one');
      return fork;
    };
    const fork = await forked(by.eve, await forked(by.ben, runId));
    for (const [client, reason] of [
      [by.ann, '"ann" has started the run that it was forked from'],
      [by.ben, '"ben" has started the run that it was forked from'],
      [by.eve, '"eve" has started the run'],
    ] as const) {
      expect(client.problem(await send(client, fork, approve), 403).detail).to.include(reason);
      expect(await approvalsOf(client, fork)).to.include({ may_decide: false });
      expect((await client.get('/api/approvals?mine=1')).text).not.to.include(fork);
    }
    expect((await rest.get('/api/approvals?mine=1')).text).to.include(fork);
    expect(await said(rest, fork, approve)).to.equal('running');
    const [requested] = factsOf(await checkRecord(service.context.log, fork), 'RunRequested');
    expect(requested?.earlierStarters).to.deep.equal(['ben', 'ann']);
  });
});
