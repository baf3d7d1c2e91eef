import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSchemas } from '../../src/api/schemas.js';
import { readRunRequest } from '../../src/cli/commands/run-request.js';
import { ArgumentInvalid } from '../../src/cli/commands/exit-codes.js';
import { tempDir } from '../support/temp-dir.js';

describe('The blueprint of council run', () => {
  const dir = tempDir();
  after(() => dir.remove());

  const read = (nodes: readonly object[], edges: readonly object[] = []) => {
    const blueprintFile = join(dir.path, 'blueprint.json');
    writeFileSync(blueprintFile, JSON.stringify({ name: 'x', nodes, edges }));
    return readRunRequest({ topic: 'Trees', blueprintFile, isGodMode: false, budget: null, matter: {} }, openSchemas());
  };

  it('gets a warning for a rank without a panel and for fields that a run ignores', () => {
    const { warnings } = read(
      [
        { id: 'a', keep: 2 },
        { id: 'r', type: 'rank' },
      ],
      [{ source: 'a', target: 'r' }],
    );
    expect(warnings).to.have.length(2);
    expect(warnings[0]).to.have.property('path', 'nodes[0].keep');
    expect(warnings[0]?.message).to.match(/only ranks/);
    expect(warnings[1]).to.have.property('path', 'nodes[1]');
    expect(warnings[1]?.message).to.match(/^No path .* panel/);
    const panel = { id: 'p', type: 'panel', members: ['one', 'two'] };
    expect(read([panel, { id: 'r', type: 'rank' }], [{ source: 'p', target: 'r' }]).warnings).to.deep.equal([]);
  });

  it('is refused if a panel has too few members', () => {
    expect(() => read([{ id: 'p', type: 'panel', members: ['one'] }])).to.throw(ArgumentInvalid, /members.*at least 2/);
  });
});
