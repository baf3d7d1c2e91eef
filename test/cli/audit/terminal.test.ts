import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { isOver, restClient } from '../../support/rest-client.js';
import { startService } from '../../support/running-service.js';
import { COMMANDS, wordyModel } from '../../support/wordy-model.js';

/** Whether util-linux's script, which gives a command a terminal of its own, is there. */
const HAS_SCRIPT = String(spawnSync('script', ['--version']).stdout).includes('util-linux');

if (HAS_SCRIPT) describe('The commands on a run, on a terminal', onTerminal);

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

  /** What the terminal is given, without the carriage returns that it adds itself: nothing changes, so it is typed once. */
  const shown = new Map<string, Promise<string>>();
  const typed = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const key = JSON.stringify([words, env]);
    const showing = shown.get(key) ?? typedAnew(words, env);
    shown.set(key, showing);
    return showing;
  };
  const typedAnew = async (words: readonly string[], env: Readonly<Record<string, string>>): Promise<string> => {
    const line = `stty cols 100; exec ${[process.execPath, COUNCIL, ...words].map((word) => `'${word}'`).join(' ')}`;
    const given = { env: { TERM: 'xterm', SHELL: '/bin/sh', DATA_DIR: dataDir, ...env } };
    const { code, stdout } = await bench.program('script', ['-qec', line, '/dev/null'], given).exit;
    expect(code, stdout).to.equal(0);
    return stdout.replaceAll('\r\n', '\n');
  };
  /** Text without the colours. */
  const plain = (text: string): string => text.replaceAll(/\x1b\[[0-9]+m/g, '');

  it('have colours, in lines that fit', async () => {
    const events = await typed(['events', runId]);
    expect(events).to.include('\x1b[32mRunCompleted').and.include('\x1b[36mmaster_agent');
    for (const line of plain(events).trimEnd().split('\n')) expect([...line].length).to.be.lessThan(100);
    expect(await typed(['verify', runId])).to.match(/^\x1b\[32mvalid\x1b\[39m: /);
    expect(await typed(['diff', runId, '--from', '4'])).to.match(/^\x1b\[31m {2}- Line 20 of .*\x1b\[39m$/m);
  });

  it('have none when NO_COLOR is set or the terminal is dumb, and some when NO_COLOR is empty', async () => {
    expect(await typed(['events', runId], { NO_COLOR: '1' })).to.not.include('\x1b');
    expect(await typed(['diff', runId, '--from', '4'], { TERM: 'dumb' })).to.not.include('\x1b');
    expect(await typed(['verify', runId], { NO_COLOR: '' })).to.include('\x1b[32m');
  });

  it('give it nothing that would command it, in JSON the same values in other characters', async () => {
    const here = { env: { DATA_DIR: dataDir } };
    for (const words of [
      ['events', runId],
      ['state', runId],
      ['diff', runId, '--from', '0'],
      ['verify', runId],
    ]) {
      expect(plain(await typed(words)), words[0]).to.not.match(/(?!\n)[\p{Cc}\u202A-\u202E\u2066-\u2069]/u);
    }
    for (const words of [
      ['events', runId, '--json'],
      ['tail', runId, '--json'],
      ['export', runId],
      ['state', runId, '--json'],
    ]) {
      const [told, piped] = [await typed(words), (await bench.council(words, here)).stdout];
      expect(piped, words[0])
        .to.match(/[\x7f-\x9f]/)
        .and.include('\u202E');
      expect(told, words[0]).to.not.match(/(?!\n)[\p{Cc}\u202A-\u202E\u2066-\u2069]/u);
      const values = (text: string) =>
        text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown);
      expect(values(told)).to.deep.equal(values(piped));
    }
  });
}
