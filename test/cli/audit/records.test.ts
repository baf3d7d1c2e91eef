import { join } from 'node:path';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { fieldOf } from '../../../src/system/untrusted.js';
import { schemaCheck } from '../../support/schema-check.js';
import type { ChildExit } from '../../support/child.js';
import type { CouncilBench } from '../../support/council-command.js';
import { COUNCIL, councilBench } from '../../support/council-command.js';
import { graphOf } from '../../support/given.js';
import { pausedBefore, startGodRun } from '../../support/god-run.js';
import type { RestClient } from '../../support/rest-client.js';
import { isOver, restClient } from '../../support/rest-client.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';
import { COMMANDS, wordyModel } from '../../support/wordy-model.js';

const TOPIC = `Trees ${COMMANDS}`;
/** Characters that control a terminal or reverse text, except line feed. */
const COMMANDING = /(?!\n)[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u;

/** Capacity of a pipe without a reader. */
const PIPE_BYTES = 64 * 1024;

describe('The commands on the record of a run, at a service and in its folder', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let rest: RestClient;
  let runId: string;
  let forkId: string;
  let pausedId: string;
  let dataDir: string;
  /** The results of each command at the service, to compare with those in the folder of the stopped service. */
  const exits = new Map<string, ChildExit>();
  let questions: Readonly<Record<string, readonly string[]>>;

  before(async () => {
    bench = councilBench();
    dataDir = join(bench.path, 'service');
    service = await startService({ dataDir, eventStore: null, model: wordyModel() });
    rest = restClient(service.url);
    runId = await rest.start(TOPIC);
    await rest.until(runId, isOver);
    pausedId = await startGodRun(service.context, graphOf('write -> judge?; judge -approve-> polish'));
    await pausedBefore(service.context, pausedId, 'write');
    const words = ['fork', runId, '--at', '6', '--topic', 'Shrubs', '--set', 'critic_score=8', '--url', service.url];
    const forked = await bench.council([...words, '--model', 'writer_agent=other']);
    expect(forked.code, forked.stderr).to.equal(0);
    forkId = forked.stdout.trimEnd();
    await rest.until(forkId, isOver);
    questions = {
      events: ['events', runId],
      'events as JSON': ['events', runId, '--json'],
      'events of a paused run': ['events', pausedId],
      tail: ['tail', runId],
      'tail as JSON': ['tail', runId, '--json'],
      state: ['state', runId],
      'state at an event': ['state', runId, '--at', '6'],
      'state as JSON': ['state', runId, '--at', '6', '--json'],
      'state of a paused run': ['state', pausedId],
      diff: ['diff', runId, '--from', '4', '--to', '10'],
      'diff as JSON': ['diff', runId, '--from', '4', '--to', '10', '--json'],
      'diff of runs': ['diff', runId, forkId, '--from', '6', '--to', '0'],
      'diff to the end': ['diff', runId, '--from', '4'],
      'diff of nothing': ['diff', runId, runId],
      verify: ['verify', runId],
      'verify as JSON': ['verify', forkId, '--json'],
      export: ['export', runId],
    };
    for (const [name, each] of Object.entries(questions)) {
      exits.set(name, await bench.council([...each, '--url', service.url]));
    }
  });

  after(async () => {
    await bench.clear();
    await service.stop();
  });

  const answer = (name: string): string => {
    const { code, stdout, stderr } = exits.get(name) ?? { code: null, stdout: '', stderr: 'never asked' };
    expect({ code, stderr }, name).to.deep.equal({ code: 0, stderr: '' });
    return stdout;
  };
  const exported = async (id: string): Promise<string> => {
    const headers = { Accept: 'application/x-ndjson' };
    return (await rest.send('GET', `/api/runs/${id}/events`, { headers })).text;
  };

  it('list every event on one line, whatever its texts contain', async () => {
    const lines = answer('events').trimEnd().split('\n');
    const events = (await exported(runId))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    expect(lines.map((line) => line.split(/ +/)[3])).to.deep.equal(events.map(({ type }) => type));
    expect(lines[0]).to.match(/^ {3}0 {2}\S+Z {2}RunRequested .*"Trees .*", built-in council$/);
    expect(lines[3]).to.match(/NodeStarted {4}master_agent {4}step 1, wordy$/);
    expect(lines[6]).to.match(
      /NodeCompleted {2}critic_agent {4}to master_agent, \d+ tokens in, \d+ out, cost not reported: score 6 "Draft 1/,
    );
    expect(lines.at(-1)).to.match(
      /RunCompleted .*score 8, 3 iterations, \d+ tokens in, \d+ out, cost not reported, draft of \d+ characters "Draft/,
    );
    expect(answer('events of a paused run')).to.match(/RunPaused .*pause 1, before write\n/);
  });

  it('print no character that controls a terminal or reverses text', () => {
    for (const name of ['events', 'tail', 'state', 'state at an event', 'diff', 'diff of runs', 'verify']) {
      expect(answer(name), name).to.not.match(COMMANDING);
    }
    expect(answer('events')).to.include('Trees \uFFFD[2J\uFFFD]0;mine\uFFFD');
    expect(answer('state')).to.include('\uFFFDright to left\uFFFD');
  });

  it('export and list as JSON the bytes of the events endpoint', async () => {
    const text = await exported(runId);
    for (const name of ['export', 'events as JSON', 'tail as JSON']) expect(answer(name), name).to.equal(text);
    const out = bench.written('run.ndjson', 'something from before');
    const ended = await bench.council(['export', runId, '--out', out, '--url', service.url]);
    expect(ended).to.include({ code: 0, stdout: '', stderr: '' });
    expect(readFileSync(out, 'utf8')).to.equal(text);
  });

  it('exit 0 without a message when the reader closes the pipe', async () => {
    for (const command of ['export', 'events', 'tail']) {
      const words = [COUNCIL, command, runId, ...(command === 'export' ? [] : ['--json']), '--url', service.url];
      const line = '{ "$0" "$@"; echo "exit $?" >&2; } | head -c 10';
      const ended = await bench.program('/bin/sh', ['-c', line, process.execPath, ...words]).exit;
      expect(ended, command).to.include({ stdout: answer('export').slice(0, 10), stderr: 'exit 0\n' });
      expect(answer('export').length).to.be.greaterThan(2 * PIPE_BYTES);
    }
  });

  it('show the same state after an event as the service', async () => {
    const state = (await rest.get(`/api/runs/${runId}/state?at=6`)).text;
    const shown: unknown = JSON.parse(answer('state as JSON'));
    expect(shown).to.deep.include(JSON.parse(state));
    expect(fieldOf(shown, 'usage')).to.include({ calls: 2 });
    expect(answer('state at an event')).to.include('score         6\n').and.include('feedback 1    Draft 1');
    expect(answer('state')).to.match(/^status {8}completed$/m);
    expect(answer('state of a paused run')).to.match(/^paused before {1}write$/m);
  });

  it('show the difference between two events, drafts line by line', () => {
    const text = answer('diff');
    expect(text).to.include(`--- ${runId} after event 4\n+++ ${runId} after event 10\n`);
    expect(text)
      .to.match(/^ {2}- Line 20 of .* in draft 1\.$/m)
      .and.match(/^ {2}\+ Line 20 of .* in draft 2\.$/m);
    expect(text.match(/^ {2}[-+] Line/gm)).to.have.lengthOf(2 * 50);
    expect(text)
      .to.match(/^critic_score: - → 7$/m)
      .and.match(/^iteration_count: 1 → 2$/m);
    const { changes } = JSON.parse(answer('diff as JSON')) as { changes: Record<string, unknown> };
    expect(changes['critic_score']).to.deep.equal({ from: null, to: 7 });
    expect(changes).to.have.property('current_draft').that.has.keys('from', 'to');
    expect(changes).to.not.have.property('input_topic');
    expect(answer('diff to the end')).to.match(/^final_draft: as current_draft$/m);
    expect(answer('diff of nothing')).to.match(/The states are the same\.\n$/);
  });

  it('show the difference between a fork and its parent', () => {
    const text = answer('diff of runs');
    expect(text)
      .to.include(`+++ ${forkId} after event 0\n`)
      .and.match(/^critic_score: 6 → 8$/m);
    expect(text).to.match(/^input_topic: Trees .* → Shrubs$/m);
  });

  it('start a fork with the given changes, or only show what it would do', async () => {
    const [first = ''] = (await exported(forkId)).split('\n');
    const { data } = JSON.parse(first) as { data: { inputTopic: string; parent: object; graph: { nodes: object[] } } };
    expect(data).to.have.property('inputTopic', 'Shrubs');
    expect(data.parent).to.include({ runId, at: 6 });
    expect(data.graph.nodes.at(-1)).to.include({ id: 'writer_agent', model: 'other' });
    const dry = await bench.council(['fork', runId, '--at', '6', '--dry-run', '--json', '--url', service.url]);
    const plan: unknown = JSON.parse(dry.stdout);
    expect(schemaCheck('fork-plan.json')(plan)).to.equal(true);
    expect(plan).to.deep.include({ reused_results: 2, next_nodes: ['master_agent'] });
    const history = rest.read(await rest.get('/api/runs/'), 200, 'history-list.json');
    expect(history).to.have.lengthOf(3);
  });

  it('verify the record of each run with the head that the service has', async () => {
    const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(answer('verify')).to.equal(
      `consistent: ${verified.events} events\nrun   ${runId}\nhead  ${verified.head_hash}\nCompare the head hash with one that you trust (--head HASH)\n`,
    );
    expect(JSON.parse(answer('verify as JSON'))).to.include({ run_id: forkId, valid: true, first_difference: null });
    for (const [head, code] of [
      [verified.head_hash, 0],
      ['0'.repeat(64), 1],
    ] as const) {
      expect(await bench.council(['verify', runId, '--head', head, '--url', service.url])).to.include({ code });
    }
  });

  it('find the first difference between an export and the record of the service', async () => {
    const lines = (await exported(runId)).split('\n').slice(0, -1);
    const file = join(bench.path, 'kept.ndjson');
    const verify = async (kept: readonly string[]) => {
      writeFileSync(file, kept.map((line) => `${line}\n`).join(''));
      return await bench.council(['verify', file, '--url', service.url]);
    };
    expect(await verify(lines)).to.include({ code: 0 });
    const cut = await verify(lines.slice(0, 5));
    expect(cut).to.include({ code: 1 });
    expect(cut.stdout).to.match(
      /^not consistent: event 5: the export ends before it, the record of the service continues$/m,
    );
    const paused = (await exported(pausedId)).split('\n').slice(0, -1);
    expect((await verify(paused)).stdout).to.match(/^consistent: /);
    const strange = (await exported(runId)).replaceAll(runId, '00000000-0000-4000-8000-000000000000').split('\n');
    const unknown = await verify(strange.slice(0, -1));
    expect(unknown).to.include({ code: 2, stdout: '' });
    expect(unknown.stderr).to.equal('Cannot find run "00000000-0000-4000-8000-000000000000"\n');
  });

  it('print the same from the folder of the stopped service', async () => {
    await service.stop();
    for (const [name, words] of Object.entries(questions)) {
      const here = await bench.council(words, { env: { DATA_DIR: dataDir } });
      expect(here, name).to.deep.equal(exits.get(name));
    }
    const waiting = await bench.council(['tail', pausedId], { env: { DATA_DIR: dataDir } });
    expect(waiting).to.include({
      code: 0,
      stderr: 'The run has not ended, and no service runs it here. Start the service to continue it\n',
    });
    expect(waiting.stdout).to.equal(answer('events of a paused run'));
  });
});
