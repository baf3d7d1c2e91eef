/**
 * The trace of a run, from its recorded events. Anyone can recompute its ids: the trace id is the run id without dashes, and
 * the id of a span is the first 8 bytes of the SHA-256 of `run_id:seq` of its opening event. A run that a council has started
 * is in the trace of the run at the top, and its span is in that of the council.
 *
 * Names follow the semantic conventions for generative AI of OpenTelemetry 1.41, in development. No span holds a text of a
 * run: neither topic, draft nor arguments.
 */
import type { RunEvent } from '../run/events.js';

export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Null for the span of a run that no council has started. */
  readonly parentSpanId: string | null;
  readonly name: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string;
  /** Together these are its attributes, without those that are null. To join them would take more time than all else here. */
  readonly attributes: readonly Attributes[];
  /** The kind of the failure, or null if there was none. */
  readonly error: string | null;
  /** The span of the run that this one is a fork of, or null. */
  readonly link: Pick<Span, 'traceId' | 'spanId'> | null;
}

type Sha256 = (text: string) => string;

function traceIdOf(runId: string): string {
  return runId.replaceAll('-', '');
}

/** @param seq revision of the opening event */
function spanIdOf(runId: string, seq: number, sha256: Sha256): string {
  return sha256(`${runId}:${seq}`).slice(0, 16);
}

/** A span that may not have ended. */
interface OpenSpan extends Omit<Span, 'endedAt' | 'attributes' | 'error' | 'traceId'> {
  readonly opening: Attributes;
}

interface SpanEnd {
  readonly attributes?: Attributes;
  readonly error?: string | null;
}

type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { readonly type: T }>;

/** The names of providers in the conventions, where they differ from those of the settings. */
const PROVIDERS: Readonly<Record<string, string>> = { gemini: 'gcp.gemini', mistral: 'mistral_ai', xai: 'x_ai' };

/** Builds the trace of one run. Keeps no text of its events. */
export class RunTrace {
  readonly #runId: string;
  #traceId: string;
  readonly #sha256: Sha256;
  /** The id of the span of the run, which `RunRequested` opens. */
  readonly #rootId: string;
  readonly #ended: Span[] = [];
  /** By step. */
  readonly #attempts = new Map<number, OpenSpan>();
  #labels: ReadonlyMap<string, string> = new Map();
  #run: OpenSpan | null = null;
  #pause: OpenSpan | null = null;
  #isOver = false;

  constructor(runId: string, sha256: Sha256) {
    this.#runId = runId;
    this.#traceId = traceIdOf(runId);
    this.#sha256 = sha256;
    this.#rootId = spanIdOf(runId, 0, sha256);
  }

  /** The spans, that of the run first, or null if the run has not ended. */
  spans(): readonly Span[] | null {
    return this.#isOver ? this.#ended.toReversed() : null;
  }

  /** Adds the next event. */
  add(event: RunEvent): void {
    switch (event.type) {
      case 'RunRequested':
        return this.#openRun(event);
      case 'NodeStarted':
        return this.#openAttempt(event);
      case 'ToolCalled':
        return this.#addTool(event);
      case 'NodeCompleted':
      case 'NodeFailed':
        return this.#endAttempt(event);
      case 'PanelClosed':
        return this.#endAttempts(event, 'discarded', event.data.panelStep);
      case 'RunPaused':
        return this.#openPause(event);
      case 'GateDecided':
        return this.#endPause(event, event.data.action);
      case 'RunCompleted':
      case 'RunFailed':
        return this.#endRun(event);
      default:
      // Other events begin and end no span.
    }
  }

  #openRun({ at, data }: EventOf<'RunRequested'>): void {
    const { blueprintName, blueprintId, executionMode, graph, parent, parentRun } = data;
    this.#labels = new Map(graph.nodes.map(({ id, label }) => [id, label]));
    const name = blueprintName ?? 'council';
    const opening = {
      'gen_ai.operation.name': 'invoke_workflow',
      'gen_ai.workflow.name': name,
      'gen_ai.conversation.id': this.#runId,
      'council.run.id': this.#runId,
      'council.run.execution_mode': executionMode,
      'council.blueprint.id': blueprintId,
    };
    const link = parent && { traceId: traceIdOf(parent.runId), spanId: spanIdOf(parent.runId, 0, this.#sha256) };
    const spanId = this.#rootId;
    if (parentRun !== undefined) this.#traceId = traceIdOf(parentRun.root ?? parentRun.runId);
    const parentSpanId = parentRun?.seq === undefined ? null : spanIdOf(parentRun.runId, parentRun.seq, this.#sha256);
    this.#run = { spanId, parentSpanId, name: `invoke_workflow ${name}`, startedAt: at, opening, link };
  }

  #openAttempt({ seq, at, data }: EventOf<'NodeStarted'>): void {
    const { step, node, attempt, model, member, panelStep, iteration } = data;
    // The attempt before was lost with its instance.
    this.#closeAttempt(step, at, { error: 'lost' });
    const name = this.#labels.get(node) ?? node;
    const slash = model.indexOf('/');
    const provider = slash < 0 ? undefined : model.slice(0, slash);
    const opening = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': node,
      'gen_ai.agent.name': name,
      'gen_ai.provider.name': provider && (PROVIDERS[provider] ?? provider),
      // A council asks no model.
      'gen_ai.request.model': model.slice(slash + 1) || undefined,
      'gen_ai.conversation.id': this.#runId,
      'council.step': step,
      'council.attempt': attempt,
      'council.iteration': iteration,
      'council.member': member,
      'council.panel_step': panelStep,
    };
    this.#attempts.set(step, this.#opened(`invoke_agent ${name}`, { seq, at }, opening));
  }

  #addTool({ seq, at, data: { step, tool, round, durationMs, error, hits } }: EventOf<'ToolCalled'>): void {
    const startedAt = new Date(Date.parse(at) - durationMs).toISOString();
    const opening = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      'gen_ai.tool.type': 'datastore',
      'council.step': step,
      'council.round': round,
      'council.hits': hits.length,
    };
    const span = this.#opened(`execute_tool ${tool}`, { seq, at: startedAt }, opening);
    const parentSpanId = this.#attempts.get(step)?.spanId ?? this.#rootId;
    this.#close({ ...span, parentSpanId }, at, { error: error === null ? null : 'tool_error' });
  }

  #endAttempt({ at, data }: EventOf<'NodeCompleted' | 'NodeFailed'>): void {
    const { usage, costUsd } = data;
    const attributes = {
      'gen_ai.usage.input_tokens': usage?.inputTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage?.cachedInputTokens,
      'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
      'council.cost_usd': costUsd,
    };
    this.#closeAttempt(data.step, at, { attributes, error: 'kind' in data ? data.kind : null });
  }

  /** Ends attempts that have no end of their own: those of a panel, or all. */
  #endAttempts({ at }: RunEvent, outcome: string, panelStep?: number): void {
    for (const [step, attempt] of this.#attempts) {
      if (panelStep !== undefined && attempt.opening['council.panel_step'] !== panelStep) continue;
      this.#closeAttempt(step, at, { attributes: { 'council.outcome': outcome } });
    }
  }

  #openPause({ seq, at, data }: EventOf<'RunPaused'>): void {
    const opening = {
      'council.gate': data.gate,
      'council.pause.reason': data.reason ?? 'approval',
      'gen_ai.conversation.id': this.#runId,
    };
    this.#pause = this.#opened('wait_for_human', { seq, at }, opening);
  }

  #endPause({ at }: RunEvent, decision: string): void {
    if (this.#pause !== null) this.#close(this.#pause, at, { attributes: { 'council.decision': decision } });
    this.#pause = null;
  }

  #endRun(event: EventOf<'RunCompleted' | 'RunFailed'>): void {
    this.#endPause(event, 'none');
    this.#endAttempts(event, 'aborted');
    const { data, at } = event;
    const isFailed = 'kind' in data;
    const attributes = {
      'council.run.status': isFailed ? 'failed' : 'completed',
      'council.run.score': isFailed ? null : data.criticScore,
      'council.run.iterations': isFailed ? null : data.iterationCount,
      'council.run.calls': data.usage?.calls,
      'council.run.input_tokens': data.usage?.inputTokens,
      'council.run.output_tokens': data.usage?.outputTokens,
      'council.run.cost_usd': data.usage?.costUsd,
    };
    if (this.#run !== null) this.#close(this.#run, at, { attributes, error: isFailed ? data.kind : null });
    this.#isOver = true;
  }

  #closeAttempt(step: number, at: string, end: SpanEnd): void {
    const attempt = this.#attempts.get(step);
    if (attempt !== undefined) this.#close(attempt, at, end);
    this.#attempts.delete(step);
  }

  #close(span: OpenSpan, at: string, { attributes = {}, error = null }: SpanEnd): void {
    const { spanId, parentSpanId, name, startedAt, opening, link } = span;
    this.#ended.push({
      traceId: this.#traceId,
      spanId,
      parentSpanId,
      name,
      startedAt,
      // The clocks of two instances may differ.
      endedAt: at < startedAt ? startedAt : at,
      attributes: error === null ? [opening, attributes] : [opening, attributes, { 'error.type': error }],
      error,
      link,
    });
  }

  /** A span in that of the run. */
  #opened(name: string, { seq, at }: Pick<RunEvent, 'seq' | 'at'>, opening: Attributes): OpenSpan {
    const spanId = spanIdOf(this.#runId, seq, this.#sha256);
    return { spanId, parentSpanId: this.#rootId, name, startedAt: at, opening, link: null };
  }
}

/** The trace of a run, or null if the run has not ended in these events. */
export async function traceIn(
  runId: string,
  events: AsyncIterable<RunEvent>,
  sha256: Sha256,
): Promise<readonly Span[] | null> {
  const trace = new RunTrace(runId, sha256);
  for await (const event of events) trace.add(event);
  return trace.spans();
}
