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
