import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { councilService } from '../../support/council-service.js';
import { graphOf } from '../../support/given.js';
import { pausedBefore, startGodRun } from '../../support/god-run.js';
import { isOver } from '../../support/rest-client.js';
import { saveReadingCouncil, startReading } from '../../support/reading-council.js';
import { asks, scriptedModel } from '../../support/scripted-model.js';
import { idOf, pdfWith, uploaded } from '../../support/upload-client.js';
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

describe('council draft of a run that cites documents', () => {
  const TREES = pdfWith(['Oaks are trees.', 'Elms are tall.']);
  const mark = `${idOf(TREES).slice(0, 8)}:1`;
  const research = [asks(['pdf_reader', { query: 'tall trees', top_k: 5 }]), { text: `Oaks [${mark}].` }];
  const council = councilService({ model: scriptedModel(research) });

  it('writes numbers and a list of sources for Word, from the service and from its folder', async () => {
    const { bench, rest, service } = council;
    await uploaded(service.url, TREES, 'trees.pdf');
    await saveReadingCouncil(service.url);
    const runId = await startReading(service.url);
    await rest.until(runId, isOver);
    const textOf = (name: string): string =>
      unzipped(readFileSync(join(bench.path, name))).get('word/document.xml') ?? '';
    const words = (name: string): readonly string[] => [
      'draft',
      runId,
      '--format',
      'docx',
      '--out',
      join(bench.path, name),
    ];
    expect((await council.ask(...words('asked.docx'))).code).to.equal(0);
    expect(textOf('asked.docx')).to.include('trees.pdf, page 1').and.not.to.include(mark);
    await service.stop();
    expect((await bench.council(words('read.docx'), { env: { DATA_DIR: service.dataDir } })).code).to.equal(0);
    expect(textOf('read.docx'))
      .to.include(`Document ${mark.slice(0, 8)}, page 1`)
      .and.not.to.include(`[${mark}]`);
  });
});
