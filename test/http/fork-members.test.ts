import { expect } from 'chai';
import type { NodeChange } from '../../src/generated/schemas.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { isOver, restClient } from '../support/rest-client.js';
import { sharedService } from '../support/shared-service.js';

/** At this event of a run the panel has not begun: the run is claimed. */
const BEFORE_PANEL = 1;

describe('A fork that changes the members of a panel', () => {
  const house = sharedService();

  async function run() {
    const rest = restClient((await house.serve(scriptedModel(councilScript([9])))).url);
    const saved = await rest.post('/api/councils/', {
      name: 'Panel',
      nodes: [
        { id: 'p', type: 'panel', members: ['one', 'two', 'three'], quorum: 3 },
        { id: 'w', label: 'Writer' },
      ],
      edges: [{ source: 'p', target: 'w' }],
    });
    const { id } = rest.read(saved, 201, 'blueprint.json');
    const begun = await rest.post(`/api/councils/${id}/run`, { input_topic: 'Trees' });
    const { run_id: runId } = rest.read(begun, 202, 'run-start.json');
    await rest.until(runId, isOver);
    const fork = (at: number, change: Partial<NodeChange>) =>
      rest.post(`/api/runs/${runId}/fork`, { at, changes: { nodes: [{ id: 'p', ...change }] } });
    return { rest, fork };
  }

  it('asks the new members', async () => {
    const { rest, fork } = await run();
    const members = ['four', { id: 'fifth', model: 'five' }];
    const reply = await fork(BEFORE_PANEL, { members, quorum: 1, graceMs: 0 });
    const { run_id: id } = rest.read(reply, 202, 'run-start.json');
    await rest.until(id, isOver);
    const { answers } = rest.read(await rest.get(`/api/runs/${id}/deliberation`), 200, 'deliberation.json');
    expect(answers.map(({ member }) => member)).to.deep.equal(['m1', 'fifth']);
  });

  it('is refused at the field if no run could follow the change', async () => {
    const { fork } = await run();
    const refused = async (at: number, change: Partial<NodeChange>): Promise<unknown> => {
      const { status, text } = await fork(at, change);
      expect(status, text).to.equal(422);
      const { errors } = JSON.parse(text) as { errors: readonly { loc: readonly unknown[]; msg: string }[] };
      return [status, errors[0]?.loc.slice(-1)[0], errors[0]?.msg];
    };
    expect(await refused(BEFORE_PANEL, { members: ['four'], quorum: 1 })).to.deep.equal([
      ...[422, 'members', 'A panel has at least two members, others one'],
    ]);
    expect(await refused(BEFORE_PANEL, { members: ['a', 'b'] })).to.deep.equal([
      ...[422, 'members', 'The quorum is above the number of members, 2'],
    ]);
    expect(await refused(BEFORE_PANEL, { quorum: 4 })).to.deep.equal([
      ...[422, 'quorum', 'The quorum is above the number of members, 3'],
    ]);
    expect(await refused(4, { members: ['a', 'b'], quorum: 1 })).to.deep.equal([
      ...[422, 'members', 'Its members are at work: fork at an earlier event'],
    ]);
  });
});
