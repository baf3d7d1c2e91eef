import { expect } from 'chai';
import type { Approval, ApprovalGone } from '../../src/generated/schemas.js';
import { schemaCheck } from '../support/schema-check.js';
import type { StreamedEvent } from '../support/event-stream-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { approvePath, pausedBefore, corruptRecord } from '../support/god-run.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { changedLog } from '../support/changed-log.js';
import { untilTrue } from '../support/until-true.js';

const PAIR = {
  nodes: [{ id: 'poet' }, { id: 'reader' }],
  edges: [{ source: 'poet', target: 'reader' }],
};

describe('The inbox', () => {
  let service: RunningService;
  let rest: RestClient;

  beforeEach(async () => {
    service = await startService({ model: scriptedModel(councilScript([8, 8, 8])) });
    rest = restClient(service.url);
  });
  afterEach(() => service.stop());

  const saved = async (id: string, more: object = {}, by = rest): Promise<string> => {
    const reply = await by.post('/api/councils/', { id, name: id, ...PAIR, ...more });
    expect(reply.status, reply.text).to.equal(201);
    return id;
  };
  /** Starts a run of a blueprint in God Mode; resolves with its id at its first pause. */
  const paused = async (blueprint: string, topic = 'The sea', by = rest): Promise<string> => {
    const reply = await by.post(`/api/councils/${blueprint}/run`, { input_topic: topic, god_mode: true });
    const { run_id: runId } = by.read(reply, 202, 'run-start.json');
    await pausedBefore(service.context, runId, 'poet');
    return runId;
  };
  const list = async (query = '', by = rest): Promise<Approval[]> =>
    by.read(await by.get(`/api/approvals${query}`), 200, 'approval-list.json');
  const idsOf = (items: readonly Approval[]): readonly string[] => items.map(({ run_id: runId }) => runId);

  it('lists the open pauses, longest wait first, with everything for a decision', async () => {
    await saved('pair');
    const first = await paused('pair', 'One');
    const second = await paused('pair', 'Two');
    const [one, two] = await list();
    expect([one?.run_id, two?.run_id]).to.deep.equal([first, second]);
    const state = rest.read(await rest.get(`/api/councils/run/${first}/state`), 200, 'god-mode-state.json');
    expect(one).to.deep.equal({
      run_id: first,
      blueprint: state.blueprint,
      input_topic: 'One',
      next_nodes: ['poet'],
      expected_seq: state.seq,
      waiting_since: state.paused_at,
      deadline: null,
      may_decide: true,
      quorum: 1,
      votes: [],
      critic_score: null,
      iteration_count: 0,
      draft_preview: null,
      changes: null,
    });
    const decided = await rest.post(approvePath(first), { action: 'reject', expected_seq: one?.expected_seq });
    expect(decided.status).to.equal(200);
    expect(idsOf(await list())).to.deep.equal([second]);
  });

  it('filters by blueprint, time and limit', async () => {
    await saved('pair');
    await saved('other');
    const ids = [await paused('pair'), await paused('other'), await paused('pair')];
    const all = await list();
    expect(idsOf(all)).to.deep.equal(ids);
    expect(idsOf(await list('?blueprint=pair'))).to.deep.equal([ids[0], ids[2]]);
    expect(idsOf(await list('?blueprint=none'))).to.deep.equal([]);
    expect(idsOf(await list('?limit=2'))).to.deep.equal(ids.slice(0, 2));
    const since = all[1]?.waiting_since ?? '';
    const later = all.filter((each) => each.waiting_since >= since);
    expect(await list(`?since=${since}`)).to.deep.equal(later);
    expect(idsOf(await list(`?since=${since.slice(0, 10)}`))).to.deep.equal(ids);
    expect(idsOf(await list('?mine=1'))).to.deep.equal(ids);
    const moments = ['soon', '', '2026-02-30T00:00:00Z', '2026-11-22T10:00:00'].map((each) => `since=${each}`);
    for (const query of [...moments, 'limit=0', 'limit=201', 'mine=2', 'mine=me'])
      rest.problem(await rest.get(`/api/approvals?${query}`), 422);
  });

  it("shows the changes since the caller's last decision on the run", async () => {
    await saved('pair');
    const runId = await paused('pair');
    const [before] = await list();
    await rest.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'reader');
    const [after] = await list();
    expect(after?.draft_preview).to.be.a('string');
    expect(after?.changes).to.deep.include({ action: 'approve' });
    expect(after?.changes?.since_seq).to.be.greaterThan(before?.expected_seq ?? 0);
    expect(after?.changes?.diff).to.equal(`@@ -0,0 +1,1 @@\n+${after?.draft_preview ?? ''}\n`);
  });

  it("does not show a deadline's decision as the caller's own", async () => {
    const nodes = [{ id: 'poet', approvals: { deadline: { after_ms: 1, then: 'approve' } } }, { id: 'reader' }];
    await saved('slow', { nodes });
    const started = await rest.post('/api/councils/slow/run', { input_topic: 'The sea', god_mode: true });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    await pausedBefore(service.context, runId, 'reader');
    const [item] = await list();
    expect(item).to.deep.include({ run_id: runId, changes: null });
  });

  it('shows the effect of a deadline, and no such field without one', async () => {
    const then = { escalate: ['bob'] };
    await paused(await saved('slow', { approvals: { deadline: { after_ms: 3_600_000, then } } }));
    await paused(await saved('pair'));
    const [slow, pair] = await list();
    expect(slow?.deadline_then).to.deep.equal(then);
    expect(pair).not.to.have.property('deadline_then');
  });

  it('lists all pauses with mine=1 on a service without keys', async () => {
    const runId = await paused(await saved('two', { approvals: { quorum: 2 } }));
    const [item] = await list('?mine=1');
    expect(item).to.include({ run_id: runId, may_decide: false });
  });

  it('omits a run with a corrupt record', async () => {
    await saved('pair');
    const runId = await paused('pair');
    await corruptRecord(service.context, runId);
    expect(await list()).to.deep.equal([]);
  });

  describe('with keys', () => {
    const approver = { scopes: ['read', 'approve'] } as const;
    let ann: RestClient;
    let bob: RestClient;
    let admin: RestClient;
    let key: string;

    beforeEach(async () => {
      admin = restWith(service.url, await addFirstKey(service.url));
      key = await addKey(admin, { name: 'ann', ...approver });
      ann = restWith(service.url, key);
      bob = restWith(service.url, await addKey(admin, { name: 'bob', ...approver }));
      await saved('two', { approvals: { by: ['ann', 'bob', 'eve'], quorum: 2 } }, admin);
      await saved('bobs', { approvals: { by: ['bob'] } }, admin);
    });

    it('lists for each approver the pauses to decide, with the votes so far', async () => {
      const both = await paused('two', 'Both', admin);
      const bobs = await paused('bobs', 'Bob', admin);
      expect(idsOf(await list('?mine=1', ann))).to.deep.equal([both]);
      expect(idsOf(await list('?mine=1', bob))).to.deep.equal([both, bobs]);
      expect((await list('', ann)).map(({ may_decide: may }) => may)).to.deep.equal([true, false]);
      const vote = await ann.post(approvePath(both), { action: 'approve', comment: 'Good.' });
      expect(ann.read(vote, 200, 'run-result.json').status).to.equal('paused');
      const [voted] = await list('', bob);
      expect(voted).to.deep.include({ run_id: both, quorum: 2 });
      expect(voted?.votes.map(({ actor, action, comment }) => [actor, action, comment])).to.deep.equal([
        ['ann', 'approve', 'Good.'],
      ]);
    });

    it("streams only the caller's pauses with mine=1", async () => {
      const stream = openEventStream(service.url, '/api/approvals/stream?mine=1', bearer(key));
      await stream.answered;
      await paused('bobs', 'Bob', admin);
      const runId = await paused('two', 'Both', admin);
      await stream.until(({ event }) => event === 'waiting');
      expect(stream.events.map(({ data }) => changeIn(data).run_id)).to.deep.equal([runId]);
      stream.leave();
    });

    it('sends an escalation to the previous approvers, but to no other client with mine=1', async () => {
      const watched = (path: string, by: string): ReturnType<typeof openEventStream> =>
        openEventStream(service.url, `/api/approvals/stream${path}`, bearer(by));
      const cat = await addKey(admin, { name: 'cat', ...approver });
      const mine = [watched('?mine=1', key), watched('?mine=1', cat)];
      for (const each of mine) await each.answered;
      await saved(
        'late',
        { approvals: { by: ['ann'], deadline: { after_ms: 1, then: { escalate: ['bob'] } } } },
        admin,
      );
      const runId = await paused('late', 'Late', admin);
      const seq = await pausedBefore(service.context, runId, 'poet');
      const [anns, cats] = mine;
      const gone = anns && goneIn(await anns.until(told('gone', runId)));
      expect(gone).to.deep.include({ expected_seq: seq, outcome: 'escalated', actor: null });
      await bob.post(approvePath(runId), { action: 'reject' });
      const anybodys = await paused(await saved('pair', {}, admin), 'Any', admin);
      await cats?.until(told('waiting', anybodys));
      expect(cats?.events).to.have.lengthOf(1);
      for (const each of mine) each.leave();
    });
  });

  describe('as a stream', () => {
    it('starts with the open pauses, then sends new, decided and ended ones', async () => {
      await saved('pair');
      const waiting = await paused('pair', 'One');
      const stream = openEventStream(service.url, '/api/approvals/stream');
      expect((await stream.answered).status).to.equal(200);
      await stream.until(told('waiting', waiting));
      const next = await paused('pair', 'Two');
      await stream.until(told('waiting', next));
      await rest.post(approvePath(next), { action: 'reject' });
      const rejected = goneIn(await stream.until(told('gone', next)));
      expect(rejected).to.deep.include({ outcome: 'reject', actor: null });
      await rest.post(`/api/councils/run/${waiting}/cancel`);
      const cancelled = goneIn(await stream.until(told('gone', waiting)));
      expect(cancelled).to.deep.include({ outcome: 'failed', actor: null });
      // A run that was running when it was cancelled was not in the inbox.
      await rest.until(await rest.start(), isOver);
      expect(stream.events.map(({ event }) => event)).to.deep.equal(['waiting', 'waiting', 'gone', 'gone']);
      stream.leave();
    });

    it('sends the pauses that ended while a client was disconnected', async () => {
      const waiting = await paused(await saved('pair'));
      const first = openEventStream(service.url, '/api/approvals/stream');
      const place = (): string | undefined =>
        first.others.flatMap((each) => /^id: (.+)$/.exec(each)?.slice(1) ?? [])[0];
      await untilTrue(() => place() !== undefined);
      expect(first.events).to.have.lengthOf(1);
      first.leave();
      await rest.post(`/api/councils/run/${waiting}/cancel`);
      const again = openEventStream(service.url, '/api/approvals/stream', { 'Last-Event-ID': place() ?? '' });
      expect(goneIn(await again.until(told('gone', waiting)))).to.include({ outcome: 'failed' });
      again.leave();
    });

    it("resumes after the client's last event without a gap or a repeat", async () => {
      await saved('pair');
      const first = openEventStream(service.url, '/api/approvals/stream');
      await first.answered;
      const one = await paused('pair', 'One');
      const { id } = await first.until(told('waiting', one));
      first.leave();
      const two = await paused('pair', 'Two');
      await rest.post(approvePath(one), { action: 'reject' });
      const again = openEventStream(service.url, '/api/approvals/stream', { 'Last-Event-ID': id });
      await again.until(told('gone', one));
      expect(again.events.map(({ event, data }) => [event, changeIn(data).run_id])).to.deep.equal([
        ['waiting', two],
        ['gone', one],
      ]);
      again.leave();
      rest.problem(await rest.get('/api/approvals/stream?from=here'), 422);
    });
  });
});

describe('An inbox with many pauses', () => {
  const read: string[] = [];
  let service: RunningService;

  before(async () => {
    service = await startService({
      model: scriptedModel(councilScript([8])),
      decorate: (log) =>
        changedLog(log, {
          readStream(stream, range) {
            read.push(stream);
            return log.readStream(stream, range);
          },
        }),
    });
  });
  after(() => service.stop());

  it('reads for mine=1 only the records of pauses that the caller may decide', async () => {
    const admin = restWith(service.url, await addFirstKey(service.url));
    const ann = restWith(service.url, await addKey(admin, { name: 'ann', scopes: ['read', 'approve'] }));
    const started = async (approvals: object): Promise<string> => {
      const saving = await admin.post('/api/councils/', { name: 'one', nodes: [{ id: 'poet' }], approvals });
      const { id } = admin.read(saving, 201, 'blueprint.json');
      const reply = await admin.post(`/api/councils/${id}/run`, { input_topic: 'The sea', god_mode: true });
      const { run_id: runId } = admin.read(reply, 202, 'run-start.json');
      await pausedBefore(service.context, runId, 'poet');
      return runId;
    };
    const late = { by: ['ann'], deadline: { after_ms: 1, then: { escalate: ['bob'] } } };
    const others = [{ by: ['bob'] }, { by: ['scope:audit'] }, { not_by_starter: true, by: ['first'] }, late];
    const ids = await Promise.all(others.map(started));
    await untilTrue(async () => !(await ann.get('/api/approvals')).text.includes('"may_decide":true'));
    const mine = await started({ by: ['ann', 'bob'], quorum: 2 });
    read.length = 0;
    const list = ann.read(await ann.get('/api/approvals?mine=1'), 200, 'approval-list.json');
    expect(list.map(({ run_id: runId }) => runId)).to.deep.equal([mine]);
    expect(read.filter((stream) => ids.some((id) => stream.endsWith(id)))).to.deep.equal([]);
  });
});

const isChange = schemaCheck('approval-change.json');

function changeIn(data: string): Approval | ApprovalGone {
  const change: unknown = JSON.parse(data);
  if (isChange(change)) return change;
  throw new Error(`${data} is no change of the inbox: ${JSON.stringify(isChange.errors)}`);
}

function goneIn({ data }: StreamedEvent): Approval | ApprovalGone {
  return changeIn(data);
}

function told(event: string, runId: string): (told: StreamedEvent) => boolean {
  return (each) => each.event === event && changeIn(each.data).run_id === runId;
}
