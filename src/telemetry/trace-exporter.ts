/** Exports each run whose end this instance has recorded. A collector that is away slows no run: see `MAX_QUEUED`. */
import type { OwnAppend } from '../run/runs/states.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import { settledWithin, wait, retryAfterMs } from '../system/async/deadline.js';
import type { Later, Send, Sent } from './collector.js';
import type { TraceCounts } from './metrics.js';
import type { Span } from './spans.js';

/** Run ids that wait for the collector, about 100 bytes each. When full, the trace of a further run is dropped. */
const MAX_QUEUED = 10_000;
/** Waits between two tries while the collector is away, in milliseconds. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Longest wait that a collector can ask for, in milliseconds. Meanwhile traces fill the queue. */
const LONGEST_ASKED_MS = 600_000;
/** A request gets no further trace once it has this many spans, the default of OpenTelemetry's exporters. */
const ENOUGH_SPANS = 512;
/** How long a stop waits for traces, in milliseconds, unless the collector is away. */
const STOP_MS = 1_000;

export interface TraceExporterDeps {
  readonly send: Send;
  /** How long a trace waits for others, in milliseconds, because a request takes as much processor time as ten traces. */
  readonly delayMs: number;
  /** The trace of a run, or null if the run has not ended. Waits while the log is unavailable. */
  readonly traceOf: (runId: string, signal: AbortSignal) => Promise<readonly Span[] | null>;
  /** Forgets the held events of a run. */
  readonly forget: (runId: string) => void;
  readonly system: Pick<System, 'now' | 'after' | 'random'>;
  readonly logger: Logger;
}

/** What became of traces for good. */
interface Settled {
  readonly outcome: Exclude<Sent, Later>['outcome'];
  readonly reason?: string;
}

export class TraceExporter {
  readonly #deps: TraceExporterDeps;
  readonly #queue: string[] = [];
  readonly #stopping = new AbortController();
  /** Aborts to send at once what is queued. */
  readonly #hurrying = new AbortController();
  readonly #ended = { exported: 0, refused: 0, dropped: 0 };
  #working: Promise<void> | null = null;
  #failures = 0;
  /** Number of traces to send alone, because the collector did not accept them together. */
  #singles = 0;
  /** Whether the collector has accepted a trace since several were last sent alone. */
  #hasAccepted = true;

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
        this.#deps.logger.error(
          {},
          'traces: the queue is full, dropping traces of later runs; export them with council traces',
        );
      this.#ended.dropped += 1;
      return;
    }
    this.#queue.push(runId);
    this.#working ??= this.#work();
  }

  /** Exports no trace of an erased run that is still in the queue. */
  forget(runId: string): void {
    this.#deps.forget(runId);
  }

  /** Sends what is queued if the collector answers, for a second at most. May be called twice. */
  async stop(): Promise<void> {
    const { system, logger } = this.#deps;
    this.#hurrying.abort();
    if (this.#working !== null && this.#failures === 0) await settledWithin(this.#working, { system, maxMs: STOP_MS });
    this.#stopping.abort();
    await this.#working;
    const runs = this.#queue.splice(0).length;
    if (runs > 0) logger.error({ runs }, 'traces: some runs were not exported; export them with council traces');
  }

  async #work(): Promise<void> {
    const { send, delayMs, system } = this.#deps;
    const { signal } = this.#stopping;
    let isFull = false;
    while (this.#queue.length > 0 && !signal.aborted) {
      const isDue = isFull || this.#singles > 0 || this.#failures > 0;
      if (!isDue) await wait(system, delayMs, this.#hurrying.signal);
      const { runs, spans } = await this.#batch();
      isFull = spans.length >= ENOUGH_SPANS;
      if (runs === 0) continue;
      await this.#after(await send(spans, signal), runs);
    }
    this.#working = null;
  }

  /** @param runs how many traces were sent */
  async #after(sent: Sent, runs: number): Promise<void> {
    const isSplit = sent.outcome !== 'exported' && sent.isToSplit && runs > 1;
    if (sent.outcome === 'later') {
      if (isSplit) this.#singles = runs;
      else if (sent.isToSplit) this.#postpone();
      return await this.#away(sent);
    }
    // After a refused request each of its traces is sent alone, which shows the faulty one. If the collector then refuses all,
    // it refuses every trace.
    if (!isSplit || !this.#hasAccepted) return this.#settle(sent, runs);
    this.#singles = runs;
    this.#hasAccepted = false;
  }

  /** The first traces of the queue: as many as fit into a request, or one. */
  async #batch(): Promise<{ readonly runs: number; readonly spans: readonly Span[] }> {
    const batch: Span[] = [];
    let runs = 0;
    for (const runId of this.#queue.slice(0, this.#singles > 0 ? 1 : ENOUGH_SPANS)) {
      const spans = await this.#spansOf(runId);
      if (typeof spans === 'string') {
        // The traces before it are sent first.
        if (runs === 0) this.#settle({ outcome: 'refused', reason: spans }, 1);
        break;
      }
      batch.push(...spans);
      runs += 1;
      if (batch.length >= ENOUGH_SPANS) break;
    }
    return { runs, spans: batch };
  }

  /** The trace of a run, or why it has none. */
  async #spansOf(runId: string): Promise<readonly Span[] | string> {
    try {
      return (await this.#deps.traceOf(runId, this.#stopping.signal)) ?? 'the run has not ended';
    } catch (error) {
      return `its record cannot be read: ${String(error)}`;
    }
  }

  /** Puts the first run behind the others, so that a trace to which the collector never answers holds up none. */
  #postpone(): void {
    this.#queue.push(...this.#queue.splice(0, 1));
    this.#singles = Math.max(0, this.#singles - 1);
  }

  /** Takes the first runs out of the queue. */
  #settle({ outcome, reason }: Settled, runs: number): void {
    const { logger } = this.#deps;
    const [runId] = this.#queue.splice(0, runs);
    this.#singles = Math.max(0, this.#singles - runs);
    this.#ended[outcome] += runs;
    if (this.#failures > 0) logger.info({}, 'traces: the collector answers again');
    this.#failures = 0;
    this.#hasAccepted ||= outcome === 'exported';
    if (outcome === 'exported') return;
    if (runs === 1) logger.error({ runId, reason }, 'traces: a trace was not exported');
    else logger.error({ runs, reason }, 'traces: some traces were not exported, or only in part');
  }

  async #away({ reason, retryAfter }: Later): Promise<void> {
    const { system, logger } = this.#deps;
    if (this.#stopping.signal.aborted) return;
    if (this.#failures === 0) logger.error({ reason }, 'traces: the collector is away; runs continue, traces wait');
    const doubledMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 10);
    const askedMs = retryAfter === null ? null : retryAfterMs(retryAfter, Date.parse(system.now()));
    // Never less than its own wait, or a collector that asks for the next request at once would take processor time from runs.
    const waitMs = Math.max(doubledMs * (0.5 + system.random() / 2), Math.min(LONGEST_ASKED_MS, askedMs ?? 0));
    await wait(system, waitMs, this.#stopping.signal);
  }
}
