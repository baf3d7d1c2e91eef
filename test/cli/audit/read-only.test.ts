import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { changeView } from '../../support/damaged-log.js';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { folderPrint } from '../../support/folder-print.js';
import { isOver, restClient } from '../../support/rest-client.js';
import { startService } from '../../support/running-service.js';

const MAIN = fileURLToPath(new URL('../../../src/main.js', import.meta.url));
/** Runs a command without the right to write: root gives up its rights, another user has none. */
const [COMMAND, WORDS] =
  process.getuid?.() === 0
    ? ['setpriv', ['--reuid', '65534', '--clear-groups', process.execPath]]
    : [process.execPath, []];
/** Whether that user can run the command in this folder. */
const HAS_NOBODY = spawnSync(COMMAND, [...WORDS, COUNCIL, '--version']).status === 0;

describe('The commands on the record of a run, in the folder of a stopped service', () => {
  let bench: CouncilBench;
  let dataDir: string;
  /** The folder for temporary files of the commands. */
  let scratch: string;

  beforeEach(() => {
    bench = councilBench();
    dataDir = join(bench.path, 'service');
    scratch = join(bench.path, 'scratch');
    mkdirSync(scratch);
  });

  afterEach(() => bench.clear());

  const stopped = async (): Promise<string> => {
    const service = await startService({ dataDir, eventStore: null });
    const rest = restClient(service.url);
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    await service.stop();
    return runId;
  };
  /** Runs every command, those in `spawned` as processes. Resolves with what each prints. */
  const askAll = async (runId: string, spawned: readonly string[] = []): Promise<readonly string[]> => {
    const all = [
      ['events', runId],
      ['tail', runId],
      ['state', runId, '--at', '6'],
      ['diff', runId, '--from', '3'],
      ['verify', runId],
      ['export', runId],
    ];
    const printed: string[] = [];
    for (const words of all) {
      const given = { env: { DATA_DIR: dataDir, TMPDIR: scratch }, input: '' };
      const ended = spawned.includes(words[0] ?? '')
        ? bench.program(process.execPath, [COUNCIL, ...words], given).exit
        : bench.council(words, given);
      const { code, stdout, stderr } = await ended;
      expect({ code, stderr }, words[0]).to.deep.equal({ code: 0, stderr: '' });
      printed.push(stdout);
    }
    return printed;
  };

  it('change no byte, size, mode or time in the folder', async () => {
    const runId = await stopped();
    const before = folderPrint(dataDir);
    await askAll(runId);
    expect(folderPrint(dataDir)).to.deep.equal(before);
  });

  it('read the journal that a killed service has left, and keep it', async () => {
    const service = bench.program(process.execPath, [MAIN], { env: { DATA_DIR: dataDir, PORT: '0' } });
    const ready = /^listening on (\S+)$/;
    await service.waitFor((lines) => lines.some((line) => ready.test(line)));
    const rest = restClient(service.lines.map((line) => ready.exec(line)?.[1]).find((url) => url !== undefined) ?? '');
    const runId = await rest.start('Trees');
    await rest.until(runId, isOver);
    const { text } = await rest.send('GET', `/api/runs/${runId}/events`, {
      headers: { Accept: 'application/x-ndjson' },
    });

    const held = await bench.council(['events', runId], { env: { DATA_DIR: dataDir } });
    expect(held.code).to.equal(5);
    expect(held.stderr).to.include(`process ${service.pid ?? ''} on`);
    // The refused command has no effect on the service.
    await rest.until(await rest.start('Shrubs'), isOver);

    await service.kill();
    expect(existsSync(join(dataDir, 'log.sqlite-wal'))).to.equal(true);
    const before = folderPrint(dataDir);
    const printed = await askAll(runId, ['verify', 'export']);
    expect(printed.at(-1)).to.equal(text);
    expect(folderPrint(dataDir)).to.deep.equal(before);
    expect(readdirSync(scratch)).to.deep.equal([]);
  });

  if (HAS_NOBODY) {
    it('work in a read-only folder', async () => {
      const runId = await stopped();
      chmodSync(bench.path, 0o755);
      for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o444);
      chmodSync(dataDir, 0o555);
      const words = [...WORDS, COUNCIL, 'verify', runId];
      const ended = await bench.program(COMMAND, words, { env: { DATA_DIR: dataDir } }).exit;
      chmodSync(dataDir, 0o755);
      expect(ended.code, ended.stderr).to.equal(0);
      expect(ended.stdout).to.match(/^consistent: 14 events$/m);
    });
  }

  it('do not read the views', async () => {
    const runId = await stopped();
    changeView(dataDir, runId, ['completed', 'failed']);
    await askAll(runId);
  });
});
