import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import type { Child } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { COUNCIL, councilBench } from '../support/council-command.js';

/** Whether the program `script` of util-linux is installed, which runs a command on a terminal of its own. */
const HAS_SCRIPT = String(spawnSync('script', ['--version']).stdout).includes('util-linux');

if (HAS_SCRIPT) describe('council run on a terminal', onTerminal);

function onTerminal(): void {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });

  afterEach(() => bench.clear());

  /** The standard output of `script` is the terminal, which shows both streams of the command. */
  const typed = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Child => {
    const line = `exec ${[process.execPath, COUNCIL, 'run', ...words].map((word) => `'${word}'`).join(' ')}`;
    return bench.program('script', ['-qec', line, '/dev/null'], { env: { TERM: 'xterm', SHELL: '/bin/sh', ...env } });
  };
  const shows = (terminal: Child, text: string): Promise<void> =>
    terminal.waitFor((lines) => lines.some((line) => line.includes(text)));

  it('redraws one progress line, and erases it at the end', async () => {
    const { code, stdout } = await typed(['The sea'], { OFFLINE_LATENCY_MS: '300' }).exit;
    expect(code, stdout).to.equal(0);
    expect(stdout).to.match(/\r\x1b\[K +\d+\.\d s {2}master_agent\r\x1b\[K +\d+\.\d s {2}\w+_agent/);
    expect(stdout).to.match(/\r\x1b\[KCompleted in /);
    expect(stdout.slice(stdout.indexOf('Completed'))).to.not.include('\x1b');
  });

  it('reads the answers of God Mode, and lends the terminal to the editor', async () => {
    const editor = bench.written('editor.sh', 'printf "Your draft? " >&2; read -r draft; echo "$draft" > "$1"\n');
    const god = typed(['The sea', '--god', '--blueprint', bench.pair()], { EDITOR: `sh ${editor}` });
    await shows(god, 'reject or edit');
    god.writeInput('approve\n');
    await shows(god, 'Paused before reader');
    god.writeInput('edit\n');
    await god.waitFor((lines) => lines.some((line) => line.includes('edit')));
    god.writeInput('The sea is deep.\n');
    const { code, stdout } = await god.exit;
    expect(code, stdout).to.equal(0);
    expect(stdout).to.include('Your draft? ');
    expect(stdout.slice(stdout.indexOf('Completed'))).to.include('The sea is deep.');
  });

  it('cancels the run on Ctrl-C', async () => {
    const slow = typed(['The sea'], { OFFLINE_LATENCY_MS: '60000' });
    await shows(slow, 'here, on the offline model');
    slow.writeInput('\x03');
    const { code, stdout } = await slow.exit;
    expect(code, stdout).to.equal(1);
    expect(stdout).to.match(/\r\x1b\[KFailed after .*: Cancelled by the user/);
  });
}
