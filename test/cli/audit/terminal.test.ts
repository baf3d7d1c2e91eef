import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { isOver, restClient } from '../../support/rest-client.js';
import { startService } from '../../support/running-service.js';
import type { TerminalCommand } from '../../support/terminal-commands.js';
import { END, TERMINAL_COMMANDS } from '../../support/terminal-commands.js';
import { COMMANDS, wordyModel } from '../../support/wordy-model.js';

/** Whether the program `script` of util-linux is installed, which runs a command on a terminal of its own. */
const HAS_SCRIPT = String(spawnSync('script', ['--version']).stdout).includes('util-linux');

/** Characters that control a terminal or reverse text, except line feed. */
const COMMANDING = /(?!\n)[\p{Cc}\u202A-\u202E\u2066-\u2069]/u;

if (HAS_SCRIPT) describe('The commands on the record of a run, on a terminal', onTerminal);

function onTerminal(this: Mocha.Suite): void {
  let bench: CouncilBench;
  let dataDir: string;
  let runId: string;

  before(async () => {
    bench = councilBench();
    dataDir = join(bench.path, 'service');
    const service = await startService({ dataDir, eventStore: null, model: wordyModel() });
    const rest = restClient(service.url);
    runId = await rest.start(`Trees ${COMMANDS}`);
    await rest.until(runId, isOver);
    await service.stop();
  });

  after(() => bench.clear());

  /** What a program prints on the terminal, without the carriage returns that the terminal adds. */
  const shownBy = async (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const line = `stty cols 100; exec ${[process.execPath, ...words].map((word) => `'${word}'`).join(' ')}`;
    const given = { env: { TERM: 'xterm', SHELL: '/bin/sh', DATA_DIR: dataDir, ...env } };
    const { code, stdout } = await bench.program('script', ['-qec', line, '/dev/null'], given).exit;
    expect(code, stdout).to.equal(0);
    return stdout.replaceAll('\r\n', '\n');
  };
  const typed = (words: readonly string[], env?: Readonly<Record<string, string>>): Promise<string> =>
    shownBy([COUNCIL, ...words], env);
  /** What each command prints. One process runs them all, because its start takes longer than the commands. */
  const typedTogether = async (commands: readonly TerminalCommand[]): Promise<readonly string[]> => {
    const shown = (await shownBy([TERMINAL_COMMANDS, JSON.stringify(commands)])).split(`${END} 0\n`);
    expect(shown.pop()).to.equal('');
    expect(shown).to.have.length(commands.length);
    return shown;
  };
  /** Text without the colours. */
  const plain = (text: string): string => text.replaceAll(/\x1b\[[0-9]+m/g, '');

  it('print colours, and lines that fit the terminal', async () => {
    const events = await typed(['events', runId]);
    expect(events).to.include('\x1b[32mRunCompleted').and.include('\x1b[36mmaster_agent');
    for (const line of plain(events).trimEnd().split('\n')) expect([...line].length).to.be.lessThan(100);
    const [again, verified, changed] = await typedTogether([
      { words: ['events', runId], env: {} },
      { words: ['verify', runId], env: {} },
      { words: ['diff', runId, '--from', '4'], env: {} },
    ]);
    expect(again).to.equal(events);
    expect(verified).to.match(/^\x1b\[32mconsistent\x1b\[39m: /);
    expect(changed).to.match(/^\x1b\[31m {2}- Line 20 of .*\x1b\[39m$/m);
  });

  it('print no colours with NO_COLOR or on a dumb terminal, and colours with an empty NO_COLOR', async () => {
    expect(await typed(['events', runId], { NO_COLOR: '1' })).to.not.include('\x1b');
    const [changed, verified] = await typedTogether([
      { words: ['diff', runId, '--from', '4'], env: { TERM: 'dumb' } },
      { words: ['verify', runId], env: { NO_COLOR: '' } },
    ]);
    expect(changed).to.include('- Line 20 of').and.not.include('\x1b');
    expect(verified).to.include('\x1b[32m');
  });

  it('print no control characters, in JSON the same values with those characters escaped', async () => {
    const texts = [
      ['events', runId],
      ['state', runId],
      ['diff', runId, '--from', '0'],
      ['verify', runId],
    ];
    const values = [
      ['events', runId, '--json'],
      ['tail', runId, '--json'],
      ['export', runId],
      ['state', runId, '--json'],
    ];
    const shown = await typedTogether([...texts, ...values].map((words) => ({ words, env: {} })));
    for (const [at, words] of texts.entries()) {
      expect(plain(shown[at] ?? ''), words[0])
        .to.match(/./)
        .and.not.match(COMMANDING);
    }
    for (const [at, words] of values.entries()) {
      const told = shown[texts.length + at] ?? '';
      const piped = (await bench.council(words, { env: { DATA_DIR: dataDir } })).stdout;
      expect(piped, words[0])
        .to.match(/[\x7f-\x9f]/)
        .and.include('\u202E');
      expect(told, words[0]).to.not.match(COMMANDING);
      expect(valuesIn(told)).to.deep.equal(valuesIn(piped));
    }
  });
}

function valuesIn(text: string): readonly unknown[] {
  const lines = text.trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}
