import { expect } from 'chai';
import { councilService } from '../support/council-service.js';
import { pausedBefore } from '../support/god-run.js';
import { saveReadingCouncil, startReading } from '../support/reading-council.js';
import { NO_RUN, isOver } from '../support/rest-client.js';
import { asks, scriptedModel } from '../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';
import { COMMANDS } from '../support/wordy-model.js';

const TREES = pdfWith(['Oaks are trees.', 'Elms are tall.']);
const MARK = idOf(TREES).slice(0, 8);
const RESEARCH = [
  asks(['pdf_reader', { query: 'tall trees', top_k: 5 }]),
  { text: `“Oaks are not trees” [${MARK}:1], as others say [deadbeef:9].` },
];

describe('The commands that show what a service knows', () => {
  const council = councilService({ model: scriptedModel(RESEARCH) });

  /** The standard output of a command that must succeed, and the JSON that `--json` prints. */
  async function shown(...words: readonly string[]): Promise<{ readonly text: string; readonly json: unknown }> {
    const [plain, json] = [await council.ask(...words), await council.ask(...words, '--json')];
    for (const { code, stderr } of [plain, json]) expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    return { text: plain.stdout, json: JSON.parse(json.stdout) };
  }
  const answerAt = async (path: string): Promise<unknown> => JSON.parse((await council.rest.get(path)).text);

  it('show the sources that a draft cites', async () => {
    await uploaded(council.service.url, TREES, 'trees.pdf');
    await saveReadingCouncil(council.service.url);
    const runId = await startReading(council.service.url);
    await council.rest.until(runId, isOver);
    const { text, json } = await shown('sources', runId);
    expect(json).to.deep.equal(await answerAt(`/api/runs/${runId}/sources`));
    expect(text.split('\n')).to.deep.equal([
      `${MARK}:1  trees.pdf page 1, chunk 0`,
      '            not found in it: “Oaks are not trees”',
      'deadbeef:9  no tool of the run has found page 9',
      '',
      'The quotation was not found in its source.',
      '',
    ]);
  });

  it('show what a paused run sends to its models next, and what that may cost', async () => {
    const { rest } = council;
    const nodes = [
      { id: 'poet', label: 'The poet', systemPrompt: `Write. ${COMMANDS}` },
      { id: 'reader', label: 'The reader' },
    ];
    const edges = [{ source: 'poet', target: 'reader' }];
    expect((await rest.post('/api/councils/', { id: 'pair', name: 'Pair', nodes, edges })).status).to.equal(201);
    const started = await rest.post('/api/councils/pair/run', { input_topic: 'The sea', god_mode: true });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    const seq = await pausedBefore(council.service.context, runId, 'poet');
    const { text, json } = await shown('next', runId);
    expect(json).to.deep.equal(await answerAt(`/api/runs/${runId}/next`));
    expect(text).to.match(new RegExp(`^Paused before The poet; decide with expected_seq ${seq}$`, 'm'));
    expect(text).to.match(/^Used so far: no calls$/m);
    expect(text).to.match(/^At most for the next calls: \d+ tokens, no price for a model$/m);
    expect(text)
      .to.match(/^The poet \(poet\), agent$/m)
      .and.to.match(/^ {2}step 1, attempt 1, scripted-1, no tools/m);
    expect(text).to.include('    Write. \uFFFD[2J').and.to.include('    The sea').and.not.to.include('\x1b');
    expect((await rest.post(`/api/councils/run/${runId}/cancel`, {})).status).to.equal(200);
    expect((await shown('next', runId)).text).to.equal('The run does not wait for a decision.\n');
  });

  it('show the instance, and what the runs of a council have used', async () => {
    const about = await shown('about');
    expect(about.json).to.include({ service: 'council-run-service', node: process.version });
    expect(about.text).to.match(/^council-run-service \S+ on Node v\S+, started \S+Z$/m);
    expect(about.text)
      .to.match(/^Log: embedded, [\d.]+ MB$/m)
      .and.to.match(/^Default model: \S+\/\S+$/m);
    const reading = await shown('estimate', '--blueprint', 'readers');
    expect(reading.json).to.deep.equal(await answerAt('/api/estimate?blueprint_id=readers'));
    expect(reading.text)
      .to.match(/^readers: 1 completed run$/m)
      .and.to.match(/^duration +\d+\.\d s +\d+\.\d s$/m);
    expect((await shown('estimate')).text).to.equal('built-in council: no completed run to estimate from\n');
  });

  it('exit with 2 without an address or with wrong words, and with 4 for an unknown run', async () => {
    for (const name of ['about', 'estimate', 'overview', 'next', 'sources', 'runs']) {
      const without = await council.bench.council(['next', 'sources'].includes(name) ? [name, NO_RUN] : [name]);
      expect([name, without.code]).to.deep.equal([name, 2]);
      expect(without.stderr).to.include('--url is missing').and.to.include(`Usage: council ${name}`);
      expect((await council.ask(name, 'x', 'y')).stderr, name).to.include('Too many words');
      expect((await council.ask(name, '--help')).stdout, name).to.match(/^Usage: council /);
    }
    for (const name of ['next', 'sources']) {
      expect(await council.ask(name)).to.deep.include({ code: 2 });
      for (const id of [NO_RUN, 'x', '..']) {
        const { code, stderr } = await council.ask(name, id);
        expect([name, id, code, stderr]).to.deep.equal([name, id, 4, `Cannot find run "${id}"\n`]);
      }
    }
  });
});
