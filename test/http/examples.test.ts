import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('GET /api/examples', () => {
  let service: RunningService;

  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  it('lists councils that can be saved without a warning, each with its purpose', async () => {
    const { blueprints } = new CouncilClient({ url: service.url });
    const examples = await blueprints.examples();
    expect(examples.map(({ id }) => id)).to.include.members(['fusion', 'peer-review', 'jury', 'code-review']);
    for (const { description, ...draft } of examples) {
      expect(description.length, draft.id).to.be.above(60);
      const { warnings, name } = await blueprints.create(draft);
      expect({ warnings, name }, draft.id).to.deep.equal({ warnings: [], name: draft.name });
    }
  });
});
