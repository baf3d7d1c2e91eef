import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { nodeSystem } from '../../src/system/system.js';
import { traceRequest } from '../../src/telemetry/collector.js';
import type { Attributes, Span } from '../../src/telemetry/spans.js';
import { RunTrace } from '../../src/telemetry/spans.js';
import type { RunEvent } from '../../src/run/events.js';
import { readGolden, runEventsIn } from '../support/golden.js';
import type { OtlpRequest } from '../support/otlp-traces.js';
import { attributesOf, spansIn } from '../support/otlp-traces.js';

function traceOf(runId: string, events: readonly RunEvent[]): readonly Span[] | null {
  const trace = new RunTrace(runId, nodeSystem().sha256);
  for (const event of events) trace.add(event);
  return trace.spans();
}

/** The id of a span, computed as the documentation says. */
function idAt(runId: string, seq: number): string {
  return createHash('sha256').update(`${runId}:${seq}`).digest().subarray(0, 8).toString('hex');
}

/** The attributes of a span in one object. */
function valuesIn(span: Span | undefined): Attributes {
  return Object.assign({}, ...(span?.attributes ?? [])) as Attributes;
}

const OPENING = ['RunRequested', 'NodeStarted', 'ToolCalled', 'RunPaused'];
const ENDS = ['RunCompleted', 'RunFailed'];

describe('The trace of a recorded run', () => {
  for (const { name, lines } of readGolden()) {
    const events = runEventsIn(lines);
    const [first] = events;
    if (first?.type !== 'RunRequested') continue;
    const { runId, inputTopic } = first.data;

    it(`has one span for each run, attempt, tool call and wait, with ids that anyone can compute: ${name}`, () => {
      const trace = traceOf(runId, events);
      if (!events.some(({ type }) => ENDS.includes(type))) {
        expect(trace).to.equal(null);
        return;
      }
      const spans = spansIn(JSON.parse(traceRequest(trace ?? [])) as OtlpRequest);
      const opening = events.filter(({ type }) => OPENING.includes(type));
      const ids = opening.map(({ seq }) => idAt(runId, seq));
      expect(spans.map(({ spanId }) => spanId)).to.have.members(ids);
      for (const { traceId } of spans) expect(traceId).to.equal(runId.replaceAll('-', ''));
      const [root, ...others] = spans;
      expect(root?.spanId).to.equal(idAt(runId, 0));
      expect(root?.parentSpanId).to.equal(undefined);
      for (const { parentSpanId } of others) expect(ids).to.include(parentSpanId);
    });

    it(`holds no topic and no draft: ${name}`, () => {
      const text = JSON.stringify(traceOf(runId, events));
      expect(text).not.to.include(inputTopic);
      for (const event of events) {
        if (event.type !== 'NodeCompleted' || !('draft' in event.data.output)) continue;
        if (event.data.output.draft !== '') expect(text).not.to.include(JSON.stringify(event.data.output.draft));
      }
    });
  }

  const RUN = '0b7e9d0e-2c7f-4b52-8a57-6a1f3d1c9e10';
  const fixed = readGolden().find(({ name }) => name.includes('fixed-graph'));
  const requested = runEventsIn(fixed?.lines ?? [])[0];

  /** A run of facts that follow a request, a second apart. */
  const spansOf = (...facts: readonly { readonly type: string; readonly data: object }[]): readonly Span[] => {
    const at = (seq: number): string => new Date(Date.UTC(2026, 10, 26, 12, 0, seq)).toISOString();
    const events = facts.map((fact, index) => ({ ...fact, seq: index + 1, at: at(index + 1), id: '', hash: '' }));
    const first = { ...requested, at: at(0) } as RunEvent;
    return traceOf(RUN, [first, ...(events as object[] as RunEvent[])]) ?? [];
  };
  const started = (step: number, more: object = {}) => ({
    type: 'NodeStarted',
    data: {
      step,
      node: 'master_agent',
      attempt: 1,
      iteration: 0,
      inputHash: '',
      model: 'gemini/gemini-2.5-pro',
      tools: [],
      delayMs: 0,
      ...more,
    },
  });
  const free = { step: 1, node: 'master_agent', attempt: 1, output: { draft: 'x' }, costUsd: 0, durationMs: 5 };
  const completed = { type: 'RunCompleted', data: { finalDraft: 'x', criticScore: 8, iterationCount: 2 } };

  it('names model, provider, tokens and cost of an attempt as the conventions do', () => {
    const usage = { inputTokens: 7, cachedInputTokens: 3, cacheWriteTokens: null, outputTokens: 5, reasoningTokens: 0 };
    const ended = { ...free, usage, costUsd: 0.25 };
    const spans = spansOf(started(1), { type: 'NodeCompleted', data: ended }, completed);
    const [, attempt] = spansIn(JSON.parse(traceRequest(spans)) as OtlpRequest);
    expect(attempt?.name).to.match(/^invoke_agent ./);
    expect(attributesOf(attempt ?? { attributes: [] })).to.include({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': 'gcp.gemini',
      'gen_ai.request.model': 'gemini-2.5-pro',
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 3,
      'council.cost_usd': 0.25,
    });
  });

  it('has one type for each attribute, whatever its value', () => {
    const types = new Map<string, string>();
    for (const { lines } of readGolden()) {
      const events = runEventsIn(lines);
      const spans = traceOf(RUN, events) ?? [];
      const sent = spansIn(JSON.parse(traceRequest(spans)) as OtlpRequest);
      for (const { key, value } of sent.flatMap(({ attributes }) => attributes)) {
        const [type = ''] = Object.keys(value);
        expect(type, key).to.equal(types.get(key) ?? type);
        types.set(key, type);
      }
    }
    expect(types.get('council.run.score')).to.equal('doubleValue');
    const request = traceRequest(spansOf(started(1), { type: 'NodeCompleted', data: free }, completed));
    expect(request).to.include('{"key":"council.cost_usd","value":{"doubleValue":0}}');
  });

  it('stays small however long the names of a council and its models are', () => {
    const long = started(1, { node: '議'.repeat(100_000), model: `${'p'.repeat(100_000)}/${'😀'.repeat(100_000)}` });
    const request = traceRequest(spansOf(long, { type: 'NodeCompleted', data: free }, completed));
    expect(request)
      .to.have.length.below(5_000)
      .and.to.include(`"name":"invoke_agent ${'議'.repeat(200)}`);
    expect(request.isWellFormed()).to.equal(true);
    expect(spansIn(JSON.parse(request) as OtlpRequest)).to.have.length(2);
  });

  it('ends an attempt that its instance lost when the next one starts', () => {
    const [, second, first] = spansOf(started(1), started(1, { attempt: 2 }), completed);
    expect(first).to.include({ error: 'lost', endedAt: second?.startedAt });
    expect(valuesIn(second)['council.outcome']).to.equal('aborted');
  });

  it('ends the members that a panel discards when it closes, and not those of another panel', () => {
    const closed = { type: 'PanelClosed', data: { node: 'master_agent', panelStep: 1 } };
    const all = spansOf(
      started(1, { member: 'ash', panelStep: 1 }),
      started(2, { member: 'elm', panelStep: 2 }),
      closed,
      completed,
    );
    const outcomes = all.map(valuesIn).map((values) => [values['council.member'], values['council.outcome']]);
    expect(outcomes).to.deep.include.members([
      ['ash', 'discarded'],
      ['elm', 'aborted'],
    ]);
  });

  it('links a fork to the run that it continues', () => {
    const parent = { runId: RUN, at: 3, hash: '' };
    const trace = new RunTrace('5f4b38f6-73fd-48ec-ad20-0c8c67900842', nodeSystem().sha256);
    if (requested?.type !== 'RunRequested') throw new Error('No request');
    trace.add({ ...requested, data: { ...requested.data, parent } });
    trace.add({ ...requested, ...completed, seq: 1 } as RunEvent);
    expect(trace.spans()?.[0]?.link).to.deep.equal({ traceId: RUN.replaceAll('-', ''), spanId: idAt(RUN, 0) });
  });
});
