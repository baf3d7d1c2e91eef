/**
 * The deadlines of paused runs. A paused run has no owner, so every instance that knows a deadline applies it, each after a
 * short random wait; the first append at the exact revision wins. Clocks may differ or be set: this only changes which
 * instance is first and when, never how often a deadline is applied.
 */
import type { RecordedEvent } from '../../eventlog/port.js';
import type { RunFactType } from '../events.js';
import { RUN_ENDS } from '../events.js';
import type { Logger } from '../../system/logger.js';
import type { System } from '../../system/system.js';
import { deadlineOf } from '../pauses/approvals.js';
import type { RunState } from '../state.js';
import { openPauseOf } from '../state.js';

/**
 * Most deadlines kept in memory. Beyond, the later half is dropped, and read from the stored views again when it is
 * near.
 */
const MAX_KNOWN = 20_000;
/**
 * Longest timer, in milliseconds. After a change of the clock, the service may be late by this time. Node allows no
 * timer over 2^31 ms.
 */
const LONGEST_TIMER_MS = 60_000;
/** Wait before a deadline is retried after a fault, in milliseconds. */
const RETRY_MS = 1_000;
/** Deadlines applied at a time. */
const MAX_APPLYING = 32;

/** A paused run, and when its pause ends, ISO 8601. */
export interface DuePause {
  readonly runId: string;
  readonly deadline: string;
}

export interface DeadlinesOptions {
  readonly system: Pick<System, 'after' | 'random' | 'now'>;
  readonly instanceId: string;
  /** Longest random wait before this instance acts, in milliseconds, so that instances do not collide. */
  readonly spreadMs: number;
  readonly history: {
    /** The earliest deadlines of stored runs, at most `max`. */
    deadlines(max: number): Promise<readonly DuePause[]>;
  };
  readonly registry: {
    /** Applies a deadline that has passed; resolves with the run's next open deadline, or null if it has none. */
    applyDeadline(runId: string): Promise<string | null>;
  };
  /** Runs whose deadlines are not applied. */
  readonly corruptRuns: { has(runId: string): boolean };
  readonly logger: Pick<Logger, 'error'>;
}

/** A deadline, and when this instance acts on it; in ms since 1970. */
interface Known {
  readonly dueMs: number;
  readonly actMs: number;
}

export class Deadlines {
  readonly categories = ['run'];
  /** The types of events that open a pause, change its deadline or end it. */
  readonly types: readonly RunFactType[] = ['RunPaused', 'PauseEscalated', 'GateDecided', ...RUN_ENDS];
  readonly #options: DeadlinesOptions;
  readonly #known = new Map<string, Known>();
  /** All deadlines before this time are known; in ms since 1970. */
  #horizonMs = Number.POSITIVE_INFINITY;
  #isForAllInstances = false;
  #isActing = false;
  #isStopped = false;
  /** When the timer calls back, in ms since 1970. */
  #wakeMs = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => undefined;
  #acting: Promise<void> = Promise.resolve();

  constructor(options: DeadlinesOptions) {
    this.#options = options;
  }

  /** Applies the deadlines of all instances' runs from now on, stored runs included. */
  start(): void {
    this.#isForAllInstances = true;
    this.#horizonMs = Number.NEGATIVE_INFINITY;
    this.#schedule();
  }

  /** Updates a run's deadline after one of its events. Before `start`, ignores events of other instances. */
  onRunFolded({ metadata }: Pick<RecordedEvent, 'metadata'>, run: RunState): void {
    const { instanceId, corruptRuns } = this.#options;
    const { runId } = run;
    const isOwn = metadata['instanceId'] === instanceId;
    if (this.#isStopped || !(this.#isForAllInstances || isOwn) || corruptRuns.has(runId)) return;
    const pause = openPauseOf(run);
    const deadline = pause === null ? null : deadlineOf(run, pause);
    if (deadline !== null) this.#schedulePause({ runId, deadline });
    else this.#known.delete(runId);
  }

  /** Applies no further deadlines; resolves once none is being applied. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer();
    await this.#acting;
  }

  #schedulePause({ runId, deadline }: DuePause, notBeforeMs = Number.NEGATIVE_INFINITY): void {
    const { system, spreadMs } = this.#options;
    const dueMs = Date.parse(deadline);
    if (dueMs >= this.#horizonMs) return;
    const actMs = Math.max(dueMs + system.random() * spreadMs, notBeforeMs);
    this.#known.set(runId, { dueMs, actMs });
    if (this.#known.size > MAX_KNOWN) this.#forgetLater();
    if (actMs < this.#wakeMs) this.#wakeAt(actMs);
  }

  /** Keeps the earlier half of the deadlines. */
  #forgetLater(): void {
    const later = [...this.#known].sort(([, a], [, b]) => a.dueMs - b.dueMs).slice(MAX_KNOWN / 2);
    for (const [runId, { dueMs }] of later) {
      this.#horizonMs = Math.min(this.#horizonMs, dueMs);
      this.#known.delete(runId);
    }
  }

  /** Sets the timer for the next deadline. */
  #schedule(): void {
    let nextMs = this.#horizonMs;
    for (const { actMs } of this.#known.values()) nextMs = Math.min(nextMs, actMs);
    this.#wakeAt(nextMs);
  }

  #wakeAt(wakeMs: number): void {
    if (this.#isStopped || this.#isActing) return;
    this.#cancelTimer();
    this.#wakeMs = wakeMs;
    if (wakeMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.max(0, Math.min(wakeMs - this.#nowMs(), LONGEST_TIMER_MS));
    this.#cancelTimer = this.#options.system.after(waitMs, () => {
      this.#acting = this.#applyDue();
    });
  }

  async #applyDue(): Promise<void> {
    this.#isActing = true;
    if (this.#nowMs() >= this.#horizonMs) await this.#read();
    const nowMs = this.#nowMs();
    const due = [...this.#known].flatMap(([runId, { actMs }]) => (actMs <= nowMs ? [runId] : []));
    for (let from = 0; from < due.length && !this.#isStopped; from += MAX_APPLYING) {
      await Promise.all(due.slice(from, from + MAX_APPLYING).map((runId) => this.#apply(runId)));
    }
    this.#isActing = false;
    this.#schedule();
  }

  /** Reads the earliest stored deadlines. Deadlines that are recorded meanwhile are newer and stay. */
  async #read(): Promise<void> {
    const { history } = this.#options;
    this.#horizonMs = Number.POSITIVE_INFINITY;
    try {
      const rows = await history.deadlines(MAX_KNOWN / 2);
      for (const each of rows) if (!this.#known.has(each.runId)) this.#schedulePause(each);
      const last = rows.length < MAX_KNOWN / 2 ? undefined : rows.at(-1);
      if (last !== undefined) this.#horizonMs = Math.min(this.#horizonMs, Date.parse(last.deadline));
    } catch (error) {
      this.#horizonMs = this.#nowMs() + RETRY_MS;
      this.#report(null, error);
    }
  }

  async #apply(runId: string): Promise<void> {
    const { registry, corruptRuns } = this.#options;
    const known = this.#known.get(runId);
    if (known === undefined) return;
    this.#known.delete(runId);
    if (corruptRuns.has(runId)) return;
    const retryMs = this.#nowMs() + RETRY_MS;
    try {
      const deadline = await registry.applyDeadline(runId);
      if (deadline !== null) this.#schedulePause({ runId, deadline }, retryMs);
    } catch (error) {
      if (this.#isStopped) return;
      this.#known.set(runId, { ...known, actMs: retryMs });
      this.#report(runId, error);
    }
  }

  #report(runId: string | null, err: unknown): void {
    if (!this.#isStopped)
      this.#options.logger.error({ runId, err }, 'deadline of a pause: failed to apply it; trying again');
  }

  #nowMs(): number {
    return Date.parse(this.#options.system.now());
  }
}
