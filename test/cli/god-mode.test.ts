import { expect } from 'chai';
import type { CouncilBench } from '../support/council-command.js';
import { COUNCIL, councilBench, resultIn } from '../support/council-command.js';

describe('council run --god', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(() => bench.clear());

  it('asks before each node and runs the approved nodes', async () => {
    const ended = await bench.run(['The sea', '--god', '--blueprint', bench.pair()], { input: 'what?\napprove\na\n' });
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stderr).to.include('Paused before poet').and.include('Paused before reader');
    expect(ended.stderr.match(/approve, reject or edit \(/g)).to.have.lengthOf(3);
  });

  it('fails a rejected run, and shows no progress of the rejected node', async () => {
    const ended = await bench.run(['The sea', '--god', '--blueprint', bench.pair()], { input: 'approve\nreject\n' });
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.include('Rejected by the user in God Mode');
    expect(nodesIn(ended.stderr)).to.deep.equal(['poet']);
  });

  it('continues with the draft that $EDITOR saves', async () => {
    const editor = bench.written('editor.sh', 'echo noise; printf "The sea is deep.\\n" > "$1"\n');
    const env = { EDITOR: `sh ${editor}` };
    const words = ['The sea', '--god', '--blueprint', bench.pair()];
    const ended = await bench.start(words, { env, input: 'approve\nedit\n' }).exit;
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stdout).to.include('The sea is deep.').and.not.include('noise');
  });

  it('asks again when the editor changes nothing or fails', async () => {
    const words = ['The sea', '--god', '--blueprint', bench.pair()];
    // The first call changes nothing, the second fails.
    const editor = bench.written('editor.sh', `test ! -e "$0.was" && touch "$0.was"\n`);
    const { stderr } = await bench.run(words, { env: { EDITOR: `sh ${editor}` }, input: 'edit\nedit\nreject\n' });
    expect(stderr).to.include('unchanged').and.include(`The editor "sh ${editor}" failed`).and.include('Rejected');
  });

  it('leaves the run paused when its input ends', async () => {
    const ended = await bench.run(['The sea', '--god', '--json', '--blueprint', bench.pair()], { input: 'approve\n' });
    expect(ended.code).to.equal(1);
    expect(resultIn(ended)).to.deep.include({ status: 'paused', next_nodes: ['reader'] });
  });

  it('cancels a paused run on SIGINT', async () => {
    const waiting = bench.start(['The sea', '--god', '--blueprint', bench.pair()]);
    await waiting.waitForStderr(/reject or edit/);
    waiting.signal('SIGINT');
    const ended = await waiting.exit;
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/^Failed after .*: Cancelled by the user$/m);
  });

  it('shows every node of parallel branches at a pause', async () => {
    const words = ['A cache of sessions', '--god', '--blueprint', 'schemas/examples/code-review.blueprint.json'];
    const ended = await bench.run(words, { input: 'a\n'.repeat(20) });
    expect(ended.code, ended.stderr).to.equal(0);
    const frontier = /^Paused before (\w+, \w+(?:, \w+)*) /m.exec(ended.stderr)?.[1]?.split(', ') ?? [];
    expect(frontier).to.have.length.greaterThan(1);
    expect(nodesIn(ended.stderr)).to.include.members(frontier);
  });

  it('accepts the edited draft and leaves the run paused when its input ends after edit', async () => {
    const editor = bench.written('editor.sh', 'sleep 0.2; printf "The sea is deep.\\n" > "$1"\n');
    const words = ['The sea', '--god', '--json', '--blueprint', bench.pair()];
    const ended = await bench.run(words, { env: { EDITOR: `sh ${editor}` }, input: 'edit' });
    expect(ended.code).to.equal(1);
    expect(resultIn(ended)).to.deep.include({ status: 'paused', next_nodes: ['reader'] });
  });

  it('cancels the run on Ctrl-C while the editor is open', async () => {
    const editor = bench.written('editor.sh', 'echo open >&2; sleep 1\n');
    const words = ['The sea', '--god', '--blueprint', bench.pair()];
    const editing = bench.start(words, { env: { EDITOR: `sh ${editor}` } });
    editing.writeInput('edit\n');
    await editing.waitForStderr(/^open$/m);
    editing.signal('SIGINT');
    const ended = await editing.exit;
    expect(ended).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/^Failed after .*: Cancelled by the user$/m);
  });

  it('starts no vi without a terminal', async () => {
    const ended = await bench.run(['The sea', '--god', '--blueprint', bench.pair()], { input: 'edit\nreject\n' });
    expect(ended.stderr).to.include('there is no terminal for vi, and EDITOR is not set').and.include('Rejected');
  });

  it('completes when its input never ends', async () => {
    const words = [COUNCIL, 'run', 'The sea', '--god', '--blueprint', bench.pair()];
    const ended = await bench.program('sh', ['-c', 'yes approve | "$0" "$@"', process.execPath, ...words]).exit;
    expect(ended.code, ended.stderr).to.equal(0);
  });
});

/** The nodes with a line of progress. */
function nodesIn(stderr: string): readonly string[] {
  return [...stderr.matchAll(/^ +\d+\.\d s {2}(\w+)/gm)].map(([, node = '']) => node);
}
