import { expect } from 'chai';
import { requestIn } from '../../../src/cli/commands/fork.js';
import { UsageFault } from '../../../src/cli/commands/exit-codes.js';

describe('council fork', () => {
  it('requests another limit of node executions with --max-node-executions', () => {
    const request = requestIn({ at: '6', 'max-node-executions': '120' });
    expect(request).to.deep.equal({ at: 6, changes: { max_node_executions: 120 } });
    for (const text of ['0', '-1', '1.5', 'many', '']) {
      expect(() => requestIn({ at: '6', 'max-node-executions': text }), text).to.throw(UsageFault);
    }
  });
});
