import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { graphOf } from '../support/given.js';
import { approvePath, pausedBefore, startGodRun } from '../support/god-run.js';
import { rejectionOf } from '../support/rejection.js';
import type { RestClient } from '../support/rest-client.js';
import { NO_RUN, isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { unzipped } from '../support/unzipped.js';

describe('GET /api/runs/{run_id}/draft', () => {
  let service: RunningService;
  let rest: RestClient;
  let council: CouncilClient;

  before(async () => {
    service = await startService({ model: scriptedModel(councilScript([8])) });
    rest = restClient(service.url);
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  it('returns the final draft as Markdown, under the name of the topic', async () => {
    const runId = await rest.start('A/B: "why"?\nSecond line ümlaut');
    const { final_draft: draft } = await rest.until(runId, isOver);
    const reply = await rest.get(`/api/runs/${runId}/draft`);
    expect(reply.status).to.equal(200);
    expect(reply.text).to.equal(draft);
    expect(reply.headers.get('Content-Type')).to.equal('text/markdown; charset=utf-8');
    expect(reply.headers.get('Content-Disposition')).to.equal(
      `attachment; filename="A B why.md"; filename*=UTF-8''A%20B%20why.md`,
    );
    const bytes = await council.run(runId).draft();
    expect(new TextDecoder().decode(bytes)).to.equal(draft);
  });

  it('returns it as a document for Word', async () => {
    const runId = await rest.start('Bäume');
    const { final_draft: draft } = await rest.until(runId, isOver);
    const reply = await fetch(`${service.url}/api/runs/${runId}/draft?format=docx`);
    expect(reply.headers.get('Content-Type')).to.include('wordprocessingml.document');
    expect(reply.headers.get('Content-Disposition')).to.equal(
      `attachment; filename="B_ume.docx"; filename*=UTF-8''B%C3%A4ume.docx`,
    );
    const bytes = Buffer.from(await reply.arrayBuffer());
    expect(reply.headers.get('Content-Length')).to.equal(String(bytes.length));
    expect(unzipped(bytes).get('word/document.xml')).to.include(draft?.split('\n')[0]);
    expect((await council.run(runId).draft({ format: 'docx' })).length).to.be.above(1_000);
  });

  it('says in front matter and in a document for Word what made it', async () => {
    const runId = await rest.start('Marked');
    await rest.until(runId, isOver);
    const events = rest.read(await rest.get(`/api/runs/${runId}/events?limit=200`), 200, 'run-events-page.json').events;
    const plain = (await rest.get(`/api/runs/${runId}/draft`)).text;
    const { text, headers } = await rest.get(`/api/runs/${runId}/draft?front_matter=1`);
    expect(headers.get('Content-Type')).to.equal('text/markdown; charset=utf-8');
    expect(text.split('\n')).to.deep.equal([
      '---',
      'council: "Built-in council"',
      'models: ["scripted-1"]',
      `run_id: "${runId}"`,
      `head_hash: "${events.at(-1)?.hash}"`,
      'approved: []',
      'digital_source_type: "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"',
      '---',
      '',
      ...plain.split('\n'),
    ]);
    const bytes = await council.run(runId).draft({ format: 'docx' });
    const parts = unzipped(Buffer.from(bytes));
    expect(parts.get('docProps/custom.xml')).to.include(events.at(-1)?.hash).and.include('trainedAlgorithmicMedia');
    expect(parts.get('word/document.xml')).to.include(`Run ${runId}.`);
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/draft?front_matter=1`), 404);
  });

  it('says who approved it, and that a person has changed it', async () => {
    const runId = await startGodRun(service.context, graphOf('write -> polish'), 'Changed');
    await pausedBefore(service.context, runId, 'write');
    await rest.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'polish');
    await rest.post(approvePath(runId), { action: 'modify', modified_state: { current_draft: 'Mine' } });
    await rest.until(runId, isOver);
    const { text } = await rest.get(`/api/runs/${runId}/draft?front_matter=true`);
    expect(text).to.match(/approved: \[\{"by":"a person","at":"[^"]*"\},\{"by":"a person","at":"[^"]*"\}\]/);
    expect(text).to.include('digitalsourcetype/compositeWithTrainedAlgorithmicMedia"');
  });

  it('says of a fork what its parent had recorded: the models, the approvals, and that a person has changed the draft', async () => {
    const parent = await startGodRun(service.context, graphOf('write -> polish; polish -> trim'), 'Changed');
    await pausedBefore(service.context, parent, 'write');
    await rest.post(approvePath(parent), { action: 'approve' });
    await pausedBefore(service.context, parent, 'polish');
    await rest.post(approvePath(parent), { action: 'modify', modified_state: { current_draft: 'Mine' } });
    await pausedBefore(service.context, parent, 'trim');
    await rest.post(approvePath(parent), { action: 'approve' });
    await rest.until(parent, isOver);
    const page = await rest.get(`/api/runs/${parent}/events?limit=200`);
    const { events } = rest.read(page, 200, 'run-events-page.json');
    const seqOf = (nth: number): number => events.filter(({ type }) => type === 'GateDecided')[nth]?.seq ?? -1;
    const marksOf = async (
      at: number,
      changes?: object,
    ): Promise<readonly [approvals: number, isChanged: boolean, models: string]> => {
      const reply = await rest.post(`/api/runs/${parent}/fork`, { at, ...(changes && { changes }) });
      const { run_id: fork } = rest.read(reply, 202, 'run-start.json');
      await rest.until(fork, ({ status }) => status === 'paused' || status === 'completed');
      const { text } = await rest.get(`/api/runs/${fork}/draft?front_matter=1`);
      expect(text).to.include(`run_id: "${fork}"`);
      const [, models = ''] = /^models: (.*)$/m.exec(text) ?? [];
      return [text.split('"by"').length - 1, text.includes('compositeWith'), models];
    };
    expect(await marksOf(seqOf(1))).to.deep.equal([2, true, '["scripted-1"]']);
    expect(await marksOf(seqOf(2) - 1)).to.deep.equal([2, true, '["scripted-1"]']);
    expect(await marksOf(seqOf(1) - 1)).to.deep.equal([1, false, '["scripted-1"]']);
    // It opens the pause again, so the decision of the parent does not count.
    expect(await marksOf(seqOf(1), { input_topic: 'Another' })).to.deep.equal([1, false, '["scripted-1"]']);
  });

  it('puts the final output of the run at the end of a document for Word', async () => {
    const run = await council.runs.start({ topic: 'Trees', outputSchema: { required: ['score'] } });
    expect((await run.result()).output).to.include({ score: 8 });
    const body = unzipped(Buffer.from(await run.draft({ format: 'docx' }))).get('word/document.xml') ?? '';
    const words = body.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(words).to.match(/^.*Draft \d+ by .* Output \{ &quot;feedback&quot;: .*&quot;score&quot;: 8 \} /);
  });

  it('returns the current draft of a run that has no final one, and 404 before the first draft', async () => {
    const runId = await startGodRun(service.context, graphOf('write -> polish'), '...');
    await pausedBefore(service.context, runId, 'write');
    const none = rest.problem(await rest.get(`/api/runs/${runId}/draft`), 404);
    expect(none.detail).to.equal(`Run "${runId}" has no draft yet: it is paused`);
    expect(await rejectionOf(council.run(runId).draft())).to.have.property('status', 404);
    await rest.post(approvePath(runId), { action: 'approve' });
    await pausedBefore(service.context, runId, 'polish');
    const { current_draft: draft } = await council.run(runId).state();
    const reply = await rest.get(`/api/runs/${runId}/draft`);
    expect(reply.text).to.equal(draft).and.not.to.equal(null);
    expect(reply.headers.get('Content-Disposition')).to.include('filename="draft.md"');
    await council.run(runId).cancel();
    expect((await rest.get(`/api/runs/${runId}/draft`)).text).to.equal(draft);
  });

  it('names the file so that every file system takes the name', async () => {
    const names = new Map([
      ['😀'.repeat(100), '😀'.repeat(60)],
      ['猫'.repeat(100), '猫'.repeat(80)],
      ['CON.txt', 'draft CON.txt'],
      ['con', 'draft con'],
      ['Console', 'Console'],
    ]);
    for (const [topic, name] of names) {
      const runId = await rest.start(topic);
      await rest.until(runId, isOver);
      const { headers } = await rest.get(`/api/runs/${runId}/draft`);
      const [, encoded = ''] = /filename\*=UTF-8''(.*)$/.exec(headers.get('Content-Disposition') ?? '') ?? [];
      expect(decodeURIComponent(encoded)).to.equal(`${name}.md`);
    }
  });

  it('answers 404 for an unknown run and 422 for an unknown format', async () => {
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/draft`), 404);
    rest.problem(await rest.get(`/api/runs/${NO_RUN}/draft?format=pdf`), 422);
  });
});
