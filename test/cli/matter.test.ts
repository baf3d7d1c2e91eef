import { expect } from 'chai';
import { MAX_MATERIAL_BYTES } from '../../src/graph/limits.js';
import type { RunResult } from '../../src/generated/schemas.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench, resultIn } from '../support/council-command.js';
import { factsOf, recordOf } from '../support/record-of.js';
import { restClient, isOver } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { offlineModel } from '../../src/models/offline.js';
import { nodeSystem } from '../../src/system/system.js';

const TOPIC = 'What does the lease say?';
const SCHEMA = {
  type: 'object',
  properties: { title: { type: 'string' }, votes: { type: 'integer', minimum: 2 } },
  required: ['title', 'votes'],
  additionalProperties: false,
};

/** What the commands print in this process and at a service. */
describe('The material, the documents and the output schema of council run and fork', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let schemaFile: string;

  before(async () => {
    bench = councilBench();
    service = await startService({ model: offlineModel({ system: nodeSystem() }) });
    schemaFile = bench.written('votes.schema.json', JSON.stringify(SCHEMA));
  });
  after(async () => {
    await service.stop();
    await bench.clear();
  });

  const atBoth = async (words: readonly string[], input = '') => [
    await bench.run([TOPIC, ...words], { input }),
    await bench.run([TOPIC, ...words, '--url', service.url], { input }),
  ];
  const lastRun = async (): Promise<string> =>
    (await service.context.queries.list({ limit: 1, offset: 0 }))[0]?.id ?? '';
  const requested = async () => factsOf(await recordOf(service.context.log, await lastRun()), 'RunRequested')[0];

  it('print the final output alone, as JSON, and the result with --json', async () => {
    for (const ended of await atBoth(['--output-schema', schemaFile])) {
      expect(ended.code, ended.stderr).to.equal(0);
      expect(JSON.parse(ended.stdout)).to.have.keys('title', 'votes').and.include({ votes: 2 });
      expect(ended.stdout).to.match(/^\{.*\}\n$/);
      expect(ended.stderr).to.match(/ {2}output/);
    }
    for (const ended of await atBoth(['--output-schema', schemaFile, '--json'])) {
      const { final_output: output, final_draft: draft } = resultIn(ended);
      expect(output).to.include({ votes: 2 });
      expect(draft).to.be.a('string');
    }
  });

  it('print the final output of a blueprint with a schema', async () => {
    const council = { name: 'Exact', nodes: [{ id: 'writer' }], output_schema: SCHEMA };
    const file = bench.written('exact.json', JSON.stringify(council));
    for (const ended of await atBoth(['--blueprint', file])) {
      expect(ended.code, ended.stderr).to.equal(0);
      expect(JSON.parse(ended.stdout)).to.include({ votes: 2 });
    }
  });

  it('take one file as it is, and several under their names, also standard input', async () => {
    const lease = bench.written('lease.txt', 'Clause 1: the tenant pays.\n');
    const bytes = Buffer.byteLength('Clause 1: the tenant pays.\n');
    for (const ended of await atBoth(['--material', lease, '--json']))
      expect(resultIn(ended).material_bytes).to.equal(bytes);
    expect((await requested())?.material).to.equal('Clause 1: the tenant pays.\n');
    const largest = bench.written('largest.txt', 'x'.repeat(MAX_MATERIAL_BYTES));
    for (const ended of await atBoth(['--material', largest, '--json']))
      expect(resultIn(ended).material_bytes, ended.stderr).to.equal(MAX_MATERIAL_BYTES);
    const both = ['--material', lease, '--material', '-', '--json'];
    const text = '## lease.txt\n\nClause 1: the tenant pays.\n\n\n## standard input\n\nÄ note';
    for (const ended of await atBoth(both, 'Ä note'))
      expect(resultIn(ended).material_bytes).to.equal(Buffer.byteLength(text));
    expect((await requested())?.material).to.equal(text);
  });

  it('end undecided at a pause for the budget when standard input was the material', async () => {
    for (const ended of await atBoth(['--material', '-', '--budget-tokens', '100', '--json'], 'Clause 1')) {
      expect(ended.code).to.equal(1);
      expect(resultIn(ended)).to.include({ status: 'paused' });
    }
  });

  it('are refused in one line with exit code 2, in the same words as by the service', async () => {
    const large = bench.written('large.txt', 'é'.repeat(MAX_MATERIAL_BYTES / 2 + 1));
    const half = bench.written('half.txt', 'x'.repeat(MAX_MATERIAL_BYTES / 2));
    const binary = bench.written('broken.json', '[');
    const remote = bench.written('remote.json', JSON.stringify({ $ref: 'https://example.org/schema' }));
    const council = (name: string, more: object): readonly string[] => [
      '--blueprint',
      bench.written(name, JSON.stringify({ name, nodes: [{ id: 'writer' }], ...more })),
    ];
    const nodes = [{ id: 'writer' }, { type: 'format', id: 'table', schema: { type: 'nothing' } }];
    const edges = [{ source: 'writer', target: 'table' }];
    const cases: readonly (readonly [words: readonly string[], reason: RegExp])[] = [
      [['--material', large], /Material should have at most 600000 bytes/],
      [['--material', half, '--material', half], /Material should have at most 600000 bytes/],
      [['--material', bench.written('empty.txt', ' \n')], /Cannot use the material: it is empty/],
      [['--material', '-'], /Cannot use the material: it is empty/],
      [['--material', 'no-such-file.txt'], /Cannot use material no-such-file.txt: there is no such file/],
      [['--documents', 'abc,def', '--documents', 'ghi'], /No such document/],
      [['--documents', 'x'.repeat(129)], /at most 128 characters/],
      [['--output-schema', 'none.json'], /Cannot use output schema none.json: there is no such file/],
      [['--output-schema', binary], /^Cannot use output schema .*: it should be JSON, but cannot be parsed$/m],
      [council('gone.json', { documents: ['gone'] }), /documents.0: No such document/],
      [council('format.json', { nodes, edges }), /nodes.1.schema: The schema cannot be used/],
      [['--output-schema', remote], /The schema cannot be used: .*example.org/],
    ];
    for (const [words, reason] of cases) {
      for (const ended of await atBoth(words)) {
        expect(ended, `${words.join(' ')}: ${ended.stderr}`).to.include({ code: 2, stdout: '' });
        expect(ended.stderr.trimEnd().split('\n'), words.join(' ')).to.have.lengthOf(1);
        expect(ended.stderr, words.join(' ')).to.match(reason);
      }
    }
    for (const words of [
      ['--material', '-', '--material', '-'],
      ['--material', '-', '--god', '--blueprint', bench.pair()],
    ])
      expect(await bench.run([TOPIC, ...words])).to.include({ code: 2, stdout: '' });
  });

  it('change those of the parent in a fork', async () => {
    await bench.run([TOPIC, '--url', service.url]);
    const parent = await lastRun();
    const lease = bench.written('lease.txt', 'Clause 2');
    const words = ['--at', '2', '--material', lease, '--output-schema', schemaFile, '--url', service.url];
    const forked = await bench.council(['fork', parent, ...words]);
    expect(forked.code, forked.stderr).to.equal(0);
    const ended: RunResult = await restClient(service.url).until(forked.stdout.trim(), isOver);
    expect(ended).to.deep.include({ status: 'completed', material_bytes: 8 });
    expect(ended.final_output).to.include({ votes: 2 });
    const at = [forked.stdout.trim(), '--url', service.url];
    const state = (await bench.council(['state', ...at])).stdout;
    expect(state)
      .to.match(/^material {6}8 bytes$/m)
      .and.match(/^final output:\n {2}\{\n {4}"title": /m);
    const lines = (await bench.council(['tail', ...at])).stdout.trimEnd().split('\n');
    expect(lines[0]).to.include('"What does the lease say?", material of 8 bytes, built-in council');
    expect(lines.at(-1)).to.match(/", output \{.*"votes":2\}$/);
    expect((await bench.council(['state', parent, '--url', service.url])).stdout).not.to.match(/material|output:/);
    const missing = await bench.council(['fork', parent, ...words, '--material', 'no-such-file.txt']);
    expect(missing).to.include({ code: 2, stdout: '' });
    expect(missing.stderr.trimEnd()).to.equal('Cannot use material no-such-file.txt: there is no such file');
  });
});
