import { expect } from 'chai';
import { IDS } from '../../../src/console/record/event-text.js';
import { inPageWords, withLabels } from '../../../src/console/record/page-words.js';

describe('The words of pages', () => {
  const labels = new Map([['judge_1', 'Pilot']]);
  const names = { ...IDS, node: (id: string) => labels.get(id) ?? id };

  it('name councils and members where the API names blueprints and nodes', () => {
    expect(inPageWords('Correct the problems that the blueprint’s page lists.')).to.equal(
      'Correct the problems that the council’s page lists.',
    );
    expect(inPageWords('Raise the deadline of the node.')).to.equal('Raise the deadline of the member.');
  });

  it('have labels in place of quoted ids in recorded errors, and leave other words as they are', () => {
    expect(withLabels('No outgoing edge of node "judge_1" holds: route rework, score 3', names)).to.equal(
      'No outgoing edge of member "Pilot" holds: route rework, score 3',
    );
    expect(withLabels('Cannot run blueprint "town": No edge leaves "judge_1"', names)).to.equal(
      'Cannot run the council: No edge leaves "Pilot"',
    );
    const said = 'Node "judge_1": The model said "node judge_1 and a blueprint"';
    expect(withLabels(said, names)).to.equal('Member "Pilot": The model said "node judge_1 and a blueprint"');
  });
});
