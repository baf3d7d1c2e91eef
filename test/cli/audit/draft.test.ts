import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { councilService } from '../../support/council-service.js';
import { graphOf } from '../../support/given.js';
import { pausedBefore, startGodRun } from '../../support/god-run.js';
import { isOver } from '../../support/rest-client.js';
import { unzipped } from '../../support/unzipped.js';

describe('council draft', () => {
  const council = councilService();

  it('prints the draft of a run byte for byte, and writes it for Word', async () => {
    const { bench, rest } = council;
    const runId = await rest.start('A sauna');
    const { final_draft: draft } = await rest.until(runId, isOver);
    expect(await council.ask('draft', runId)).to.include({ code: 0, stdout: draft, stderr: '' });
    const file = join(bench.path, 'sauna.docx');
    const written = await council.ask('draft', runId, '--format', 'docx', '--out', file);
    expect(written).to.include({ code: 0, stdout: '', stderr: '' });
    expect(unzipped(readFileSync(file)).get('word/document.xml')).to.include('A sauna');
  });

  it('fails for a run without a draft and for an unknown format', async () => {
    const { context } = council.service;
    const runId = await startGodRun(context, graphOf('write -> polish'));
    await pausedBefore(context, runId, 'write');
    const none = await council.ask('draft', runId);
    expect(none).to.include({ code: 1, stderr: `Run "${runId}" has no draft yet\n` });
    expect((await council.ask('draft', runId, '--format', 'pdf')).code).to.equal(2);
  });
});
