/** Exports each run whose end this instance has recorded. A collector that is away slows no run: see `MAX_QUEUED`. */
import type { OwnAppend } from '../run/live/own-appends.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import { settledWithin, wait } from '../system/async/deadline.js';
import type { Later, Send, Sent } from './collector.js';
import type { TraceCounts } from './metrics.js';
import type { Span } from './spans.js';

/** Run ids that wait for the collector, about 100 bytes each. When full, the trace of a further run is dropped. */
const MAX_QUEUED = 10_000;
/** Waits between two tries while the collector is away, in milliseconds. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** How long a stop waits for traces, in milliseconds, unless the collector is away. */
const STOP_MS = 1_000;

export interface TraceExporterDeps {
  readonly send: Send;
  /** Reads the trace of a run from the log, or null if the run has not ended. Waits while the log is unavailable. */
  readonly traceOf: (runId: string, signal: AbortSignal) => Promise<readonly Span[] | null>;
  readonly system: Pick<System, 'after' | 'random'>;
  readonly logger: Logger;
}

export class TraceExporter {
  readonly #deps: TraceExporterDeps;
  readonly #queue: string[] = [];
  readonly #stopping = new AbortController();
  readonly #ended = { exported: 0, refused: 0, dropped: 0 };
  #working: Promise<void> | null = null;
  #failures = 0;

  constructor(deps: TraceExporterDeps) {
    this.#deps = deps;
  }

  counts(): TraceCounts {
    return { ...this.#ended, queued: this.#queue.length };
  }

  /** Queues the run if the append ends it. */
  onRunAppended({ events, after: { runId } }: OwnAppend): void {
    const last = events.at(-1)?.type;
    if ((last !== 'RunCompleted' && last !== 'RunFailed') || this.#stopping.signal.aborted) return;
    if (this.#queue.length >= MAX_QUEUED) {
      if (this.#ended.dropped === 0)
        this.#deps.logger.error({}, 'traces: the queue is full, dropping those of further runs; see council traces');
      this.#ended.dropped += 1;
      return;
    }
    this.#queue.push(runId);
    this.#working ??= this.#work();
  }

  /** Sends what is queued if the collector answers, for a second at most. May be called twice. */
  async stop(): Promise<void> {
    const { system, logger } = this.#deps;
    if (this.#working !== null && this.#failures === 0) await settledWithin(this.#working, { system, maxMs: STOP_MS });
    this.#stopping.abort();
    await this.#working;
    const runs = this.#queue.splice(0).length;
    if (runs > 0) logger.error({ runs }, 'traces: some runs were not exported; export them with council traces');
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    for (let runId = this.#queue[0]; runId !== undefined && !signal.aborted; runId = this.#queue[0]) {
      const sent = await this.#export(runId);
      if (sent.outcome === 'later') await this.#away(sent);
      else this.#settle(runId, sent);
    }
    this.#working = null;
  }

  async #export(runId: string): Promise<Sent> {
    const { traceOf, send } = this.#deps;
    try {
      const spans = await traceOf(runId, this.#stopping.signal);
      if (spans !== null) return await send(spans, this.#stopping.signal);
      return { outcome: 'refused', reason: 'the run has not ended' };
    } catch (error) {
      return { outcome: 'refused', reason: `its record cannot be read: ${String(error)}` };
    }
  }

  #settle(runId: string, sent: Exclude<Sent, Later>): void {
    const { logger } = this.#deps;
    this.#queue.shift();
    this.#ended[sent.outcome] += 1;
    if (this.#failures > 0) logger.info({}, 'traces: the collector answers again');
    this.#failures = 0;
    if (sent.outcome === 'refused') logger.error({ runId, reason: sent.reason }, 'traces: a trace was not exported');
  }

  async #away({ reason, retryAfterMs }: Later): Promise<void> {
    const { system, logger } = this.#deps;
    if (this.#stopping.signal.aborted) return;
    if (this.#failures === 0) logger.error({ reason }, 'traces: the collector is away; runs continue, traces wait');
    const doubledMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 10);
    const waitMs = Math.min(LONGEST_WAIT_MS, retryAfterMs ?? doubledMs * (0.5 + system.random() / 2));
    await wait(system, waitMs, this.#stopping.signal);
  }
}
