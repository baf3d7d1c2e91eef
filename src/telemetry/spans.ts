/**
 * The trace of a run, from its recorded events. Anyone can recompute its ids: the trace id is the run id without dashes, and
 * the id of a span is the first 8 bytes of the SHA-256 of `run_id:seq` of its opening event.
 *
 * Names follow the semantic conventions for generative AI of OpenTelemetry 1.41, in development. No span holds a text of a
 * run: neither topic, draft nor arguments.
 */
import type {
  NodeCompletedData,
  NodeFailedData,
  NodeStartedData,
  RunCompletedData,
  RunFailedData,
  RunRequestedData,
  ToolCalledData,
} from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';

export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  /** Null: the span of the run. */
  readonly parentSpanId: string | null;
  readonly name: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string;
  /** Together its attributes; those without a value are absent. Not joined, which takes more time than all else here. */
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

/** The names of providers in the conventions, where they differ from those of the settings. */
const PROVIDERS: Readonly<Record<string, string>> = { gemini: 'gcp.gemini', mistral: 'mistral_ai', xai: 'x_ai' };

/** Builds the trace of one run. Keeps no text of its events. */
export class RunTrace {
  readonly #runId: string;
  readonly #traceId: string;
  readonly #sha256: Sha256;
  readonly #ended: Span[] = [];
  /** By step. */
  readonly #attempts = new Map<number, OpenSpan & { readonly panelStep: number | undefined }>();
  #labels: ReadonlyMap<string, string> = new Map();
  #run: OpenSpan | null = null;
  #pause: OpenSpan | null = null;
  #isOver = false;

  constructor(runId: string, sha256: Sha256) {
    this.#runId = runId;
    this.#traceId = traceIdOf(runId);
    this.#sha256 = sha256;
  }

  /** The spans, that of the run first, or null if the run has not ended. */
  spans(): readonly Span[] | null {
    return this.#isOver ? this.#ended.toReversed() : null;
  }

  /** Adds the next event. */
  add(event: RunEvent): void {
    switch (event.type) {
      case 'RunRequested':
        this.#requested(event, event.data);
        break;
      case 'NodeStarted':
        this.#started(event, event.data);
        break;
      case 'ToolCalled':
        this.#toolCalled(event, event.data);
        break;
      case 'NodeCompleted':
      case 'NodeFailed':
        this.#endAttempt(event, event.data);
        break;
      case 'PanelClosed':
        this.#endAttempts(event, 'discarded', event.data.panelStep);
        break;
      case 'RunPaused':
        this.#paused(event);
        break;
      case 'GateDecided':
        this.#endPause(event, event.data.action);
        break;
      case 'RunCompleted':
      case 'RunFailed':
        this.#endRun(event, event.data);
        break;
      default:
      // Other events begin and end no span.
    }
  }

  #requested(
    { seq, at }: RunEvent,
    { blueprintName, blueprintId, executionMode, graph, parent }: RunRequestedData,
  ): void {
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
    const spanId = this.#idAt(seq);
    this.#run = { spanId, parentSpanId: null, name: `invoke_workflow ${name}`, startedAt: at, opening, link };
  }

  #started({ seq, at }: RunEvent, started: NodeStartedData): void {
    const { step, node, attempt, model, member, panelStep, iteration } = started;
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
      'gen_ai.request.model': model.slice(slash + 1),
      'gen_ai.conversation.id': this.#runId,
      'council.step': step,
      'council.attempt': attempt,
      'council.iteration': iteration,
      'council.member': member,
      'council.panel_step': panelStep,
    };
    this.#attempts.set(step, {
      spanId: this.#idAt(seq),
      parentSpanId: this.#rootId(),
      name: `invoke_agent ${name}`,
      startedAt: at,
      opening,
      link: null,
      panelStep,
    });
  }

  #toolCalled({ seq, at }: RunEvent, { step, tool, round, durationMs, error, hits }: ToolCalledData): void {
    const startedAt = new Date(Date.parse(at) - durationMs).toISOString();
    const opening = {
      ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool, 'gen_ai.tool.type': 'datastore' },
      ...{ 'council.step': step, 'council.round': round, 'council.hits': hits.length },
    };
    const ids = { spanId: this.#idAt(seq), parentSpanId: this.#attempts.get(step)?.spanId ?? this.#rootId() };
    const span = { ...ids, name: `execute_tool ${tool}`, startedAt, opening, link: null };
    this.#close(span, at, { error: error === null ? null : 'tool_error' });
  }

  #endAttempt({ type, at }: RunEvent, data: NodeCompletedData | NodeFailedData): void {
    const { usage, costUsd } = data;
    const attributes = {
      'gen_ai.usage.input_tokens': usage?.inputTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage?.cachedInputTokens,
      'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
      'council.cost_usd': costUsd,
    };
    const error = type === 'NodeFailed' && 'kind' in data ? data.kind : null;
    this.#closeAttempt(data.step, at, { attributes, error });
  }

  /** Ends attempts that have no end of their own: those of a panel, or all. */
  #endAttempts({ at }: RunEvent, outcome: string, panelStep?: number): void {
    for (const [step, attempt] of this.#attempts) {
      if (panelStep !== undefined && attempt.panelStep !== panelStep) continue;
      this.#closeAttempt(step, at, { attributes: { 'council.outcome': outcome } });
    }
  }

  #paused({ seq, at, type, data }: RunEvent): void {
    if (type !== 'RunPaused') return;
    const { gate, reason = 'approval' } = data;
    const opening = { 'council.gate': gate, 'council.pause.reason': reason, 'gen_ai.conversation.id': this.#runId };
    const ids = { spanId: this.#idAt(seq), parentSpanId: this.#rootId() };
    this.#pause = { ...ids, name: 'wait_for_human', startedAt: at, opening, link: null };
  }

  #endPause({ at }: RunEvent, decision: string): void {
    if (this.#pause !== null) this.#close(this.#pause, at, { attributes: { 'council.decision': decision } });
    this.#pause = null;
  }

  #endRun(event: RunEvent, data: RunCompletedData | RunFailedData): void {
    this.#endPause(event, 'none');
    this.#endAttempts(event, 'aborted');
    const { usage } = data;
    const attributes = {
      ...resultOf(data),
      'council.run.calls': usage?.calls,
      'council.run.input_tokens': usage?.inputTokens,
      'council.run.output_tokens': usage?.outputTokens,
      'council.run.cost_usd': usage?.costUsd,
    };
    const error = 'kind' in data ? data.kind : null;
    if (this.#run !== null) this.#close(this.#run, event.at, { attributes, error });
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

  #idAt(seq: number): string {
    return spanIdOf(this.#runId, seq, this.#sha256);
  }

  /** The id of the span of the run. */
  #rootId(): string {
    return this.#run?.spanId ?? this.#idAt(0);
  }
}

function resultOf(data: RunCompletedData | RunFailedData): Attributes {
  if ('kind' in data) return { 'council.run.status': 'failed' };
  const { criticScore, iterationCount } = data;
  return {
    'council.run.status': 'completed',
    'council.run.score': criticScore,
    'council.run.iterations': iterationCount,
  };
}

interface SpanEnd {
  readonly attributes?: Attributes;
  readonly error?: string | null;
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
