import { expect } from 'chai';
import type { BlueprintNode } from '../../../src/generated/schemas.js';
import { changed } from '../../../src/console/pages/blueprint/draft.js';
import type { ShownRole } from '../../../src/console/record/page-words.js';
import {
  editorRole,
  isAtMemberField,
  memberIdFault,
  membersOf,
  roleChange,
  withMember,
  withMemberChanged,
  withMemberMoved,
  withoutMember,
} from '../../../src/console/pages/blueprint/members.js';

const NODE: BlueprintNode = { id: 'a', mine: 7 };

describe('The role of a node in the editor', () => {
  it('gives a panel or jury three members, and takes away what the next role does not use', () => {
    const as = (node: BlueprintNode, role: ShownRole): BlueprintNode => changed(node, roleChange(node, role));
    const panel = as(NODE, 'panel');
    expect(panel).to.include({ type: 'panel', mine: 7 });
    expect(membersOf(panel).map(({ id, label }) => [id, label])).to.deep.equal([
      ['m1', 'Member 1'],
      ['m2', 'Member 2'],
      ['m3', 'Member 3'],
    ]);
    const jury = as({ ...panel, quorum: 2, graceMs: 5 }, 'jury');
    expect(jury).to.include({ type: 'critic', quorum: 2, graceMs: 5 });
    expect(membersOf(jury)).to.deep.equal(membersOf(panel));
    expect(editorRole(jury, 'critic')).to.equal('jury');
    const critic = as({ ...jury, aggregate: 'mean' }, 'critic');
    expect(critic).to.deep.equal({ id: 'a', mine: 7, type: 'critic' });
    expect(as({ ...NODE, keep: 2, quorum: 1 }, 'rank')).to.deep.equal({ ...NODE, keep: 2, type: 'rank' });
  });

  it('decides which findings of the service are at a field', () => {
    const at = (role: ShownRole, field: string): boolean => isAtMemberField(field, role);
    expect(at('panel', 'members[1].model')).to.equal(true);
    expect(at('panel', 'quorum')).to.equal(true);
    expect(at('panel', 'keep')).to.equal(false);
    expect(at('agent', 'members')).to.equal(false);
    expect(at('jury', 'model')).to.equal(false);
  });
});

describe('The members of a node', () => {
  const members = membersOf({ id: 'a', members: ['sea/large', { id: 'x', mine: 1 }, { label: 'C' }] });

  it('have ids, also those that only name a model', () => {
    expect(members).to.deep.equal([
      { id: 'm1', model: 'sea/large' },
      { id: 'x', mine: 1 },
      { id: 'm3', label: 'C' },
    ]);
  });

  it('can be added, removed, moved and changed, and keep unknown fields', () => {
    const added = withMember(withoutMember(members, 0));
    expect(added.map(({ id }) => id)).to.deep.equal(['x', 'm3', 'm4']);
    expect(withMemberMoved(members, 0, 1).map(({ id }) => id)).to.deep.equal(['x', 'm1', 'm3']);
    expect(withMemberMoved(members, 2, -1).map(({ id }) => id)).to.deep.equal(['m1', 'm3', 'x']);
    expect(withMemberMoved(members, 2, 1)).to.equal(members);
    expect(withMemberChanged(members, 1, { model: 'sea/small' })[1]).to.deep.equal({
      id: 'x',
      mine: 1,
      model: 'sea/small',
    });
    expect(withMemberChanged(members, 0, { model: undefined })[0]).to.deep.equal({ id: 'm1' });
  });

  it('cannot have the id of another member, or none', () => {
    const [first = { id: '' }] = members;
    expect(memberIdFault(members, first, 'x')).to.match(/Another member/);
    expect(memberIdFault(members, first, '')).to.match(/another id/);
    expect(memberIdFault(members, first, 'm1')).to.equal(null);
  });
});
