import { expect } from 'chai';
import { deliberationOf } from '../../src/audit/deliberation.js';
import type { FoldEvents } from '../../src/audit/parents.js';
import { citedPagesOf } from '../../src/audit/sources.js';
import { buildForkRequest } from '../../src/run/fork.js';
import type { RunEvent } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Story } from '../support/given.js';
import { RUN_ID, answered, begun, given, graphWith, usedTool, wrote } from '../support/given.js';
import { plainName } from '../support/open-engine.js';

const FORK_ID = '00000000-0000-4000-8000-000000000002';
const { sha256 } = nodeSystem();
const MEMBERS = ['ash', 'elm'].map((id) => ({ id, label: id }));
const GRAPH = graphWith(
  [{ id: 'panel', role: 'panel', members: MEMBERS, graceMs: 0 }, { id: 'read' }, { id: 'write' }],
  [
    { id: '1', source: 'panel', target: 'read', condition: null },
    { id: '2', source: 'read', target: 'write', condition: null },
  ],
);

/** A run whose panel has answered and whose reader has found a page. */
function parentWith(answer: string, chunk: number): Story {
  const hit = { document: 'a'.repeat(64), page: 1, chunk, score: 1 };
  return given(GRAPH).whenAll(
    ...[answered('ash', answer), answered('elm', answer)],
    ...[usedTool('read', [hit]), wrote('read', 'Trees [aaaaaaaa:1]')],
  );
}

async function* each(events: readonly RunEvent[]) {
  yield* events;
}

describe('What the parent of a fork had recorded', () => {
  const parent = parentWith('Oaks', 0);
  const changes = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null };
  const fork = begun(
    buildForkRequest(parent.run, changes, { runId: FORK_ID, bodyHash: 'b', actor: null, fullName: plainName, sha256 }),
  ).when(wrote('write', 'Elms [aaaaaaaa:1]'));
  const reading =
    (record: Story): FoldEvents =>
    (runId, fold, max) =>
      fold(each((runId === RUN_ID ? record : fork).events.slice(0, max)));
  const depsOf = (folded: FoldEvents) => ({
    folded,
    pagesOf: () => Promise.resolve(null),
    pause: () => Promise.resolve(),
  });
  const chunksIn = async (record: Story) =>
    (await citedPagesOf(FORK_ID, depsOf(reading(record))))?.map(({ chunks }) => chunks);
  const textsIn = async (record: Story) =>
    (await deliberationOf(FORK_ID, reading(record)))?.answers.map(({ text }) => text);

  it('belongs to its sources and its deliberation', async () => {
    expect(await chunksIn(parent)).to.deep.equal([[0]]);
    expect(await textsIn(parent)).to.deep.equal(['Oaks', 'Oaks']);
  });

  it('is left out of both if the record of the parent is not the one that the fork continued', async () => {
    const forged = parentWith('Palms', 7);
    expect(forged.events).to.have.lengthOf(parent.events.length);
    expect(await chunksIn(forged)).to.deep.equal([[]]);
    // The fork's own record has the answers that its nodes can see.
    expect(await textsIn(forged)).to.deep.equal(['Oaks', 'Oaks']);
  });
});
