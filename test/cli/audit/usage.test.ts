import { expect } from 'chai';
import { parseCommand } from '../../../src/cli/commands/audit-usage.js';
import { UsageFault } from '../../../src/cli/commands/command.js';

const RUN = '00000000-0000-4000-8000-000000000001';
const FORK = ['fork', RUN, '--at', '6', '--url', 'http://127.0.0.1:8000'];

describe('council fork', () => {
  it('asks for another bound of executions with --max-node-executions', () => {
    const command = parseCommand([...FORK, '--max-node-executions', '120', '--dry-run']);
    expect(command).to.deep.include({ request: { at: 6, changes: { max_node_executions: 120 } }, isDry: true });
    for (const text of ['0', '-1', '1.5', 'many', '']) {
      expect(() => parseCommand([...FORK, `--max-node-executions=${text}`]), text).to.throw(UsageFault);
    }
  });
});
