import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { CHAPTER, report, script } from '../support/council-of-chapters.js';
import type { OtlpRequest, OtlpSpan } from '../support/otlp-traces.js';
import { attributesOf, spansIn } from '../support/otlp-traces.js';
import { fakeServer, sends } from '../support/fake-server.js';
import { factsOf, recordOf } from '../support/record-of.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

const OUTER = { id: 'outer', name: 'Outer', nodes: [{ id: 'inner', type: 'council', council: 'report' }] };

describe('The traces of councils in councils', () => {
  it('are one: the span of each run is in that of its council, and its ids follow from the record', async () => {
    const collector = await fakeServer<OtlpRequest>([sends({ partialSuccess: {} })]);
    const traces = { endpoint: collector.url, headers: {}, delayMs: 50 };
    const service = await startService({ model: scriptedModel(script), traces });
    const rest = restClient(service.url);
    for (const body of [CHAPTER, report(), OUTER])
      expect((await rest.post('/api/councils/', body)).status).to.equal(201);
    const reply = await rest.post('/api/councils/outer/run', { input_topic: 'Trees' });
    const runId = rest.read(reply, 202, 'run-start.json').run_id;
    await rest.until(runId, isOver);

    const spans = (): readonly OtlpSpan[] => collector.calls.flatMap(({ body }) => spansIn(body));
    const roots = (): readonly OtlpSpan[] => spans().filter(({ name }) => name.startsWith('invoke_workflow'));
    await collector.until(() => roots().length === 5);
    expect(new Set(spans().map(({ traceId }) => traceId))).to.deep.equal(new Set([runId.replaceAll('-', '')]));

    /** The span of the council that has started a run. */
    const above = (root: OtlpSpan): OtlpSpan | undefined => spans().find(({ spanId }) => spanId === root.parentSpanId);
    const names = roots().map((root) => [root.name, above(root)?.name]);
    expect(names).to.have.deep.members([
      ['invoke_workflow Outer', undefined],
      ['invoke_workflow Report', 'invoke_agent inner'],
      ...[1, 2, 3].map(() => ['invoke_workflow Chapter', 'invoke_agent chapters']),
    ]);
    for (const root of roots()) {
      const council = above(root);
      if (council === undefined) continue;
      const child = String(attributesOf(root)['council.run.id']);
      const [request] = factsOf(await recordOf(service.context.log, child), 'RunRequested');
      const { runId: parent = '', step } = request?.parentRun ?? {};
      const events = await recordOf(service.context.log, parent);
      const seq = events.find(({ type, data }) => type === 'NodeStarted' && data.step === step)?.seq;
      expect(council.spanId).to.equal(createHash('sha256').update(`${parent}:${seq}`).digest('hex').slice(0, 16));
      expect(attributesOf(council)).not.to.have.any.keys('gen_ai.request.model', 'gen_ai.provider.name');
    }
    await service.stop();
    await collector.stop();
  });
});
