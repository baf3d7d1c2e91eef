import { expect } from 'chai';
import type { Output } from '../../src/cli/commands/run-council.js';
import { OutputLost, writeResult } from '../../src/cli/commands/run-council.js';
import type { RunResult } from '../../src/generated/schemas.js';
import { rejectionOf } from '../support/rejection.js';

const RESULT: RunResult = {
  run_id: '00000000-0000-4000-8000-000000000000',
  status: 'completed',
  final_draft: 'The \x1b[31m sea\x9b\n\tis deep.',
  critic_score: 8,
  iteration_count: 2,
  error: null,
  paused: null,
  next_nodes: null,
  current_draft: null,
};

describe('The output of a run', () => {
  let written: string;
  const stream = (isTTY: boolean, fault: Error | null = null): Output['stream'] => ({
    isTTY,
    write(text, told) {
      written += String(text);
      told(fault);
    },
  });

  beforeEach(() => {
    written = '';
  });

  it('is the unchanged draft, on a terminal without control characters', async () => {
    await writeResult(RESULT, { stream: stream(false), isJson: false, hasOutput: false });
    expect(written).to.equal(`${RESULT.final_draft ?? ''}\n`);
    written = '';
    await writeResult(RESULT, { stream: stream(true), isJson: false, hasOutput: false });
    expect(written).to.equal('The \uFFFD[31m sea\uFFFD\n\tis deep.\n');
    written = '';
    await writeResult(RESULT, { stream: stream(true), isJson: true, hasOutput: false });
    expect(written).to.not.match(/[\x1b\x9b]/);
    expect(JSON.parse(written)).to.include({ status: 'completed' });
  });

  it('fails on a full disk, but not when the reader has closed the pipe', async () => {
    const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    for (const isJson of [false, true]) {
      const lost = await rejectionOf(writeResult(RESULT, { stream: stream(false, full), isJson, hasOutput: false }));
      expect(lost).to.be.instanceOf(OutputLost);
      expect(lost).to.have.property('message').that.includes(RESULT.run_id).and.includes('no space left');
    }
    const gone = Object.assign(new Error('broken pipe'), { code: 'EPIPE' });
    await writeResult(RESULT, { stream: stream(false, gone), isJson: false, hasOutput: false });
  });
});
