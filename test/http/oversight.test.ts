import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { Approvals, OversightRow, Scope } from '../../src/generated/schemas.js';
import { approvePath, corruptRecord, pausedBefore, stateOf } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { addFirstKey, addKey, restWith } from '../support/keys.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const NODES = [{ id: 'one' }, { id: 'two' }];
const EDGES = [{ source: 'one', target: 'two' }];
const OPENED = '2026-01-02T03:04:05+01:00';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('A decision that says what the person had before them', () => {
  let service: RunningService;
  let rest: RestClient;
  let ann: RestClient;
  let ben: RestClient;

  before(async () => {
    service = await startService({ model: instantModel() });
    rest = restWith(service.url, await addFirstKey(service.url));
    const approver = async (name: string, ...more: readonly Scope[]): Promise<RestClient> =>
      restWith(service.url, await addKey(rest, { name, scopes: ['read', 'run', 'approve', ...more] }));
    [ann, ben] = [await approver('ann'), await approver('ben')];
  });
  after(async () => {
    await service.stop();
    // The one damaged record is reported.
    expect(service.faults).to.have.lengthOf(1);
  });

  async function started(topic: string, approvals?: Approvals): Promise<string> {
    const blueprint = { name: 'Line', nodes: NODES, edges: EDGES, ...(approvals && { approvals }) };
    const { id } = rest.read(await rest.post('/api/councils/', blueprint), 201, 'blueprint.json');
    const reply = await rest.post(`/api/councils/${id}/run`, { input_topic: topic, god_mode: true });
    return rest.read(reply, 202, 'run-start.json').run_id;
  }

  /** A run that waits before its second node, with a draft. */
  async function withDraft(topic: string, approvals?: Approvals): Promise<{ runId: string; draft: string }> {
    const runId = await started(topic, approvals);
    await pausedBefore(service.context, runId, 'one');
    for (const each of approvals === undefined ? [ann] : [ann, ben])
      await each.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'two');
    const { current_draft: draft } = (await stateOf(rest, runId)).current_state;
    if (draft === null) throw new Error('There is no draft');
    return { runId, draft };
  }

  const rowsOf = async (query = ''): Promise<readonly OversightRow[]> =>
    rest.read(await rest.get(`/api/oversight${query}`), 200, 'oversight.json');

  it('is recorded with the digest of the draft and the time as sent', async () => {
    const { runId, draft } = await withDraft('Digest');
    const review = { draft_sha256: sha256(draft), opened_at: OPENED };
    const reply = await ann.post(approvePath(runId), { action: 'approve', review });
    expect(ann.read(reply, 200, 'run-result.json').status).to.equal('running');
    await rest.until(runId, isOver);
    const [first, second] = factsOf(await checkRecord(service.context.log, runId), 'GateDecided');
    expect(first).not.to.have.property('review');
    expect(second?.review).to.deep.equal({ draftSha256: sha256(draft), openedAt: OPENED });
    const genealogy = rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    expect(genealogy.decisions.map(({ opened_at: at }) => at)).to.deep.equal([null, OPENED]);
  });

  it('is refused with 409 for another draft, and the pause stays open', async () => {
    const { runId, draft } = await withDraft('Another');
    for (const draft_sha256 of [sha256(`${draft} `), null]) {
      const review = { draft_sha256, opened_at: OPENED };
      const { detail } = ann.problem(await ann.post(approvePath(runId), { action: 'approve', review }), 409);
      expect(detail).to.include('review.draft_sha256');
    }
    expect(await stateOf(rest, runId)).to.include({ paused: true });
    const events = await checkRecord(service.context.log, runId);
    expect(factsOf(events, 'GateDecided')).to.have.lengthOf(1);
  });

  it('names no draft at a pause without one', async () => {
    const runId = await started('No draft');
    await pausedBefore(service.context, runId, 'one');
    const body = (draft_sha256: string | null) => ({ action: 'approve', review: { draft_sha256, opened_at: OPENED } });
    ann.problem(await ann.post(approvePath(runId), body(sha256(''))), 409);
    ann.read(await ann.post(approvePath(runId), body(null)), 200, 'run-result.json');
  });

  it('is refused with 422 if it is malformed', async () => {
    const { runId, draft } = await withDraft('Malformed');
    const digest = sha256(draft);
    for (const [review, field] of [
      [{ draft_sha256: digest.toUpperCase(), opened_at: OPENED }, 'draft_sha256'],
      [{ draft_sha256: digest }, 'opened_at'],
      [{ draft_sha256: 'ab', opened_at: OPENED }, 'draft_sha256'],
      [{ draft_sha256: digest, opened_at: 'yesterday' }, 'opened_at'],
      [{ draft_sha256: digest, opened_at: '2026-02-30T00:00:00Z' }, 'opened_at'],
    ] as const) {
      const { errors } = ann.problem(await ann.post(approvePath(runId), { action: 'approve', review }), 422);
      expect(errors?.map(({ loc }) => loc)).to.deep.equal([['body', 'review', field]]);
    }
  });

  it('is one row of the oversight with its votes, in the order of the decisions', async () => {
    const from = new Date().toISOString();
    const { runId, draft } = await withDraft(`${'𝄞'.repeat(100)}, further`, { quorum: 2 });
    const review = { draft_sha256: sha256(draft), opened_at: OPENED };
    await ann.post(approvePath(runId), { action: 'modify', modified_state: { current_draft: 'Mine' }, review });
    const decision = { action: 'modify', modified_state: { current_draft: 'Mine' }, comment: '=1+1' };
    await ben.post(approvePath(runId), decision);
    await rest.until(runId, isOver);
    const rows = await rowsOf(`?from=${from}`);
    expect(rows.map(({ node, action, actor, votes }) => [node, action, actor, votes.length])).to.deep.equal([
      ['one', 'approve', 'ben', 1],
      ['two', 'modify', 'ben', 1],
    ]);
    const [first, second] = rows;
    expect(first).to.deep.include({ draft_sha256: null, draft_changed: false, decided_by: 'person', quorum: 2 });
    expect(second).to.deep.include({
      run_id: runId,
      input_topic: '𝄞'.repeat(100),
      council: 'Line',
      comment: '=1+1',
      opened_at: null,
      draft_sha256: sha256(draft),
      draft_changed: true,
      quorum: 2,
    });
    expect(second?.votes[0]).to.include({ actor: 'ann', action: 'modify', opened_at: OPENED });
    expect(second?.waited_ms).to.equal(Date.parse(second?.decided_at ?? '') - Date.parse(second?.paused_at ?? ''));
    // As a table, a comment is no formula.
    const table = await rest.get(`/api/oversight?format=csv&from=${from}`);
    expect(table.headers.get('Content-Type')).to.equal('text/csv; charset=utf-8');
    const lines = table.text.split('\r\n');
    expect(lines).to.have.lengthOf(4);
    expect(lines[0]).to.match(/^decided_at,actor,decided_by,action,comment,/);
    expect(lines[2]).to.include(`,ben,person,modify,'=1+1,${runId},`);
    // Both bounds are inclusive, and a day in UTC is whole.
    const at = second?.decided_at ?? '';
    expect(await rowsOf(`?from=${at}&to=${at}`)).to.deep.equal([second]);
    expect(await rowsOf(`?from=${at.slice(0, 10)}&to=${at.slice(0, 10)}`)).to.deep.include(second);
    expect(await rowsOf('?to=2020-01-01')).to.deep.equal([]);
    rest.problem(await rest.get('/api/oversight?from=soon'), 422);
    rest.problem(await rest.get('/api/oversight?format=xml'), 422);
  });

  it('is told apart from the decision of a deadline, and hides no other run when a record is damaged', async () => {
    const from = new Date().toISOString();
    const damaged = await started('Damaged');
    await pausedBefore(service.context, damaged, 'one');
    await ann.post(approvePath(damaged), { action: 'approve' });
    await pausedBefore(service.context, damaged, 'two');
    await corruptRecord(service.context, damaged);
    const runId = await started('In time', { deadline: { after_ms: 1, then: 'reject' } });
    await rest.until(runId, isOver);
    const rows = await rowsOf(`?from=${from}`);
    const ofRun = rows.map(({ run_id: id, actor, action, decided_by: by }) => [id, actor, action, by]);
    expect(ofRun).to.deep.equal([[runId, null, 'reject', 'deadline']]);
  });

  it('of a run that is erased while the table is read hides no other one', async () => {
    const from = new Date().toISOString();
    const [gone, kept] = [await started('Gone'), await started('Kept')];
    for (const runId of [gone, kept]) {
      await pausedBefore(service.context, runId, 'one');
      await ann.post(approvePath(runId), { action: 'reject' });
      await rest.until(runId, isOver);
    }
    const { audits } = service.context;
    const decisions = audits.decisions.bind(audits);
    audits.decisions = async (runId) => {
      if (runId === gone) expect((await rest.send('DELETE', `/api/runs/${gone}`)).status).to.equal(204);
      return await decisions(runId);
    };
    expect((await rowsOf(`?from=${from}`)).map(({ run_id: id }) => id)).to.deep.equal([kept]);
  });

  it('is listed for the scope audit alone', async () => {
    ann.problem(await ann.get('/api/oversight'), 403);
    const auditor = restWith(service.url, await addKey(rest, { name: 'auditor', scopes: ['audit'] }));
    expect((await auditor.get('/api/oversight')).status).to.equal(200);
  });
});
