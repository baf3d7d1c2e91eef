import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { ApprovalPrompt } from '../../src/cli/terminal/approval-prompt.js';
import { openApprovalPrompt } from '../../src/cli/terminal/approval-prompt.js';
import type { GodModeState } from '../../src/generated/schemas.js';

const STATE: GodModeState = {
  run_id: '00000000-0000-4000-8000-000000000000',
  paused: true,
  next_nodes: ['poet'],
  current_state: {
    run_id: '00000000-0000-4000-8000-000000000000',
    input_topic: 'The sea',
    current_draft: 'The sea is wide.',
    critic_score: null,
    iteration_count: 1,
    feedback_history: [],
    route_decision: null,
    active_node: 'poet',
  },
  branches: [],
  seq: 4,
  paused_at: '2026-01-01T00:00:00.000Z',
  allowed_actions: ['approve', 'reject', 'modify'],
  blueprint: { id: 'pair', name: 'Pair', hash: 'a'.repeat(64) },
};

describe('The approval prompt of God Mode', () => {
  const shown: string[] = [];
  let prompt: ApprovalPrompt | null = null;
  const promptOn = (
    input: Readable,
    edit: (text: string) => Promise<string | null> = async () => null,
  ): ApprovalPrompt => {
    prompt = openApprovalPrompt({ input, say: (text) => shown.push(text), edit });
    return prompt;
  };

  afterEach(() => {
    prompt?.close();
    shown.length = 0;
  });

  it('reads only the lines that it needs from endless input', async () => {
    let read = 0;
    const endless = new Readable({
      highWaterMark: 1024,
      read: () => void endless.push('approve\n'.repeat((read += 1))),
    });
    const { ask } = promptOn(endless);
    for (let pause = 0; pause < 3; pause += 1) expect(await ask(STATE)).to.deep.equal({ action: 'approve' });
    const readFor3 = read;
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).to.equal(readFor3).and.lessThan(64);
    endless.destroy();
  });

  it('accepts answers in full or abbreviated, and lists them after another answer', async () => {
    const { ask } = promptOn(Readable.from(['yes\n', '\n', 'A\n', 'rej\n']));
    expect(await ask(STATE)).to.deep.equal({ action: 'approve' });
    expect(await ask(STATE)).to.deep.equal({ action: 'reject' });
    expect(shown.filter((text) => text.includes('is not an answer'))).to.deep.equal([
      '"yes" is not an answer: type approve, reject or edit, or a, r, e.',
      '"" is not an answer: type approve, reject or edit, or a, r, e.',
    ]);
  });

  it('reads the rest of the line as a comment, unless it is too long', async () => {
    const { ask } = promptOn(
      Readable.from([`approve ${'x'.repeat(2_001)}\n`, 'a  Fine by me.\n', 'edit Shorter\n']),
      async () => 'Short.',
    );
    expect(await ask(STATE)).to.deep.equal({ action: 'approve', comment: 'Fine by me.' });
    expect(shown.some((text) => text.includes('at most 2000 characters'))).to.equal(true);
    const override = { current_draft: 'Short.' };
    expect(await ask(STATE)).to.deep.equal({ action: 'modify', override, comment: 'Shorter' });
  });

  it('accepts an edited draft after its input has ended, then returns no more answers', async () => {
    const { ask } = promptOn(Readable.from(['edit\n']), async (text) => {
      await new Promise((resolve) => setImmediate(resolve));
      return `${text} And deep.`;
    });
    expect(await ask(STATE)).to.deep.equal({
      action: 'modify',
      override: { current_draft: 'The sea is wide. And deep.' },
    });
    expect(await ask(STATE)).to.equal(null);
  });

  it('shows the drafts of branches if they differ, and edits each alone', async () => {
    const edit = async (text: string): Promise<string | null> => (text === 'Right.' ? 'Right!' : null);
    const branches = [
      { node: 'left', current_draft: 'Left.' },
      { node: 'right', current_draft: 'Right.' },
      { node: 'meet', current_draft: 'Waits.' },
    ];
    const current_state = { ...STATE.current_state, current_draft: 'Left.' };
    const state = { ...STATE, next_nodes: ['left', 'right'], current_state, branches };
    const { ask } = promptOn(Readable.from(['edit\n']), edit);
    expect(await ask(state)).to.deep.equal({
      action: 'modify',
      override: { branches: [{ node: 'right', current_draft: 'Right!' }] },
    });
    expect(shown[0])
      .to.include('The draft of left:\n  | Left.\nThe draft of right:\n  | Right.')
      .and.not.include('Waits');
  });

  it('shows the approvers and their votes', async () => {
    const votes = [{ actor: 'ann', action: 'approve' as const, at: '2026-01-01T00:00:00.000Z', comment: null }];
    const asked = { not_by_starter: false, deadline: '2026-01-02T00:00:00.000Z', may_decide: true };
    const { ask } = promptOn(Readable.from(['a\n']));
    await ask({ ...STATE, approvals: { by: ['ann', 'scope:admin'], quorum: 2, votes, ...asked } });
    expect(shown[0]).to.include(
      '\nApprovers: ann, scope:admin; 1 of 2 votes (ann: approve), until 2026-01-02T00:00:00.000Z',
    );
  });

  it('edits a shared draft for all branches at once', async () => {
    const branches = ['left', 'right'].map((node) => ({ node, current_draft: STATE.current_state.current_draft }));
    const { ask } = promptOn(Readable.from(['edit\n']), async () => 'Both.');
    expect(await ask({ ...STATE, next_nodes: ['left', 'right'], branches })).to.deep.equal({
      action: 'modify',
      override: { current_draft: 'Both.' },
    });
  });

  it('returns no answer if it is closed during an edit', async () => {
    const open = promptOn(Readable.from(['edit\n']), async () => {
      open.close();
      return null;
    });
    expect(await open.ask(STATE)).to.equal(null);
    expect(shown.at(-2)).to.include('unchanged');
  });
});
