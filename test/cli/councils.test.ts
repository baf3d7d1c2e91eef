import { expect } from 'chai';
import { CHAPTER, report, script } from '../support/council-of-chapters.js';
import { councilBench } from '../support/council-command.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

describe('The commands, for a council in a council', () => {
  it('show each of its runs as a row under its node, with title, end and cost', async () => {
    const bench = councilBench();
    const model = scriptedModel((request, index) =>
      request.promptInput.material === 'Two' ? { error: new Error('no answer') } : script(request, index),
    );
    const service = await startService({ model });
    const rest = restClient(service.url);
    const outer = report({ on_error: 'skip', max_parallel: 1 });
    for (const body of [CHAPTER, outer]) expect((await rest.post('/api/councils/', body)).status).to.equal(201);
    const file = bench.written('report.json', JSON.stringify({ ...outer, id: 'other' }));

    const shown = await bench.council(['run', 'Trees', '--blueprint', file, '--url', service.url]);
    expect(shown.code, shown.stderr).to.equal(0);
    const rows = shown.stderr.split('\n').filter((line) => line.startsWith('  chapters: '));
    expect(rows.map((row) => row.replace(/\d+ tokens in, \d+ out.*/, 'tokens'))).to.deep.equal([
      '  chapters: 0 "One" completed, tokens',
      '  chapters: 1 "Two" failed, Node "write": no answer',
      '  chapters: 2 "Three" completed, tokens',
    ]);

    const reply = await rest.post('/api/councils/report/run', { input_topic: 'Trees' });
    const runId = rest.read(reply, 202, 'run-start.json').run_id;
    const told = await bench.council(['tail', runId, '--url', service.url]);
    expect(isOver(await rest.poll(runId))).to.equal(true);
    const tree = told.stdout.split('\n').flatMap((line) => /└ .*?(?=,)/.exec(line)?.[0] ?? []);
    expect(tree).to.deep.equal(['└ 0 "One"', '└ 0 "One"', '└ 1 "Two"', '└ 1 "Two"', '└ 2 "Three"', '└ 2 "Three"']);
    expect(told.stdout).to.match(/ChildEnded .*└ 1 "Two", failed, .*no answer$/m);
    expect(told.stdout).to.match(/NodeCompleted +chapters +to edit: draft of/);
    const listed = await bench.council(['runs', '--parent-run', runId, '--url', service.url]);
    expect(listed.stdout.match(/\w+ · Trees/g)).to.deep.equal(['Three · Trees', 'Two · Trees', 'One · Trees']);
    // A council around this one has the same runs, one level deeper.
    const around = { id: 'around', name: 'Around', nodes: [{ id: 'whole', type: 'council', council: 'report' }] };
    expect((await rest.post('/api/councils/', around)).status).to.equal(201);
    const outermost = await rest.post('/api/councils/around/run', { input_topic: 'Trees' });
    const outermostId = rest.read(outermost, 202, 'run-start.json').run_id;
    const tail = await bench.council(['tail', outermostId, '--url', service.url]);
    const below = [...tail.stdout.matchAll(/ChildEnded .*?(└[^,]*),/g)].map(([, row]) => row);
    expect(below).to.deep.equal(['└ 0', '└── 0 "One"', '└── 1 "Two"', '└── 2 "Three"']);
    await bench.clear();
    await service.stop();
  });
});
