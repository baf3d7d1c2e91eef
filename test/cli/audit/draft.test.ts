import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CouncilBench } from '../../support/council-command.js';
import { councilBench } from '../../support/council-command.js';
import { graphOf } from '../../support/given.js';
import { pausedBefore, startGodRun } from '../../support/god-run.js';
import type { RestClient } from '../../support/rest-client.js';
import { isOver, restClient } from '../../support/rest-client.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';
import { unzipped } from '../../support/unzipped.js';

describe('council draft', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    bench = councilBench();
    service = await startService({ dataDir: join(bench.path, 'service'), eventStore: null });
    rest = restClient(service.url);
  });
  after(async () => {
    await service.stop();
    await bench.clear();
  });

  it('prints the draft of a run byte for byte, and writes it for Word', async () => {
    const runId = await rest.start('A sauna');
    const { final_draft: draft } = await rest.until(runId, isOver);
    const place = ['--url', service.url];
    expect(await bench.council(['draft', runId, ...place])).to.include({ code: 0, stdout: draft, stderr: '' });
    const file = join(bench.path, 'sauna.docx');
    const written = await bench.council(['draft', runId, '--format', 'docx', '--out', file, ...place]);
    expect(written).to.include({ code: 0, stdout: '', stderr: '' });
    expect(unzipped(readFileSync(file)).get('word/document.xml')).to.include('A sauna');
  });

  it('fails for a run without a draft and for an unknown format', async () => {
    const runId = await startGodRun(service.context, graphOf('write -> polish'));
    await pausedBefore(service.context, runId, 'write');
    const none = await bench.council(['draft', runId, '--url', service.url]);
    expect(none).to.include({ code: 1, stderr: `Run "${runId}" has no draft yet\n` });
    expect((await bench.council(['draft', runId, '--format', 'pdf', '--url', service.url])).code).to.equal(2);
  });
});
