/** An open circuit: a model whose server is out, or refuses calls because of a rate limit. */
import type { ModelFailed } from '../errors.js';
import type { Backoff, CancelSignal } from '../system/async/deadline.js';
import { backoffMs, honouredMs } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import { isOutage } from './failed-exchange.js';

/** An outage as it is recorded of a node that waits it out. */
export interface Outage {
  /** When the node first met it, ISO 8601. */
  readonly since: string;
  /** How long the node waits for the server from then on, in milliseconds. */
  readonly budgetMs: number;
}

/** How long a call waits an outage out. */
export interface OutageWait {
  readonly since: string;
  /** End of the outage's budget, on the monotonic clock: a wall clock that is behind does not prolong it. */
  readonly endsMs: number;
}

/** How long an outage is waited out from now on. */
export function outageWait(
  { since, budgetMs }: Outage,
  { now, monotonicMs }: Pick<System, 'now' | 'monotonicMs'>,
): OutageWait {
  const leftMs = Math.min(budgetMs, Date.parse(since) + budgetMs - Date.parse(now()));
  return { since, endsMs: monotonicMs() + leftMs };
}

/** First wait between two probes, in milliseconds; doubles with each failure, up to the longest. */
const BACKOFF: Backoff = { firstMs: 500, longestMs: 10_000 };
/** The same while the server refuses because of a rate limit: jitter takes up to half, so waits begin at 1 s (contract, section 5). */
const RATE_LIMIT_BACKOFF: Backoff = { firstMs: 2_000, longestMs: 30_000 };
/** How long a circuit without callers stays open after its next probe was due, in milliseconds. */
const MEMORY_MS = 10_000;

/** How a call ended: the failure, or `answered`, or `unknown` if the call was cancelled or not made. */
export type CallOutcome = 'answered' | 'unknown' | ModelFailed;

type Clock = Pick<System, 'after' | 'monotonicMs' | 'random'>;

/** The open circuit of one model. */
export class Circuit {
  readonly #system: Clock;
  readonly #outageMs: number;
  /** When a rate limit first refused a call since the model last answered, on the monotonic clock, or null if none did. */
  #limitedMs: number | null = null;
  #failure: ModelFailed;
  /** Failures in a row. */
  #failures = 0;
  /** When the last failure came, on the monotonic clock. */
  #failedMs = 0;
  /** When the next probe is due, on the monotonic clock. While a probe hangs the next one is due as well. */
  #dueMs = 0;
  /** Whether the server itself asked for that wait (Retry-After). */
  #isAsked = false;
  /** When the wait ends that the last failure asked for, on the monotonic clock. */
  #askedUntilMs = 0;
  /** Probes under way. */
  #probes = 0;
  /** Functions that wake the waiting callers, in order of arrival. At most the model calls of all active runs. */
  readonly #waiting = new Set<() => void>();
  /** Cancels the timer of the next probe; null without one. It is set while callers wait. */
  #cancelTimer: (() => void) | null = null;

  /**
   * @param failure of the call that found the server out
   * @param outageMs budget of the outage, in milliseconds
   */
  constructor(failure: ModelFailed, outageMs: number, system: Clock) {
    this.#system = system;
    this.#outageMs = outageMs;
    this.#failure = failure;
    this.fail(failure);
  }

  get failure(): ModelFailed {
    return this.#failure;
  }

  /** The rest of the wait that the server asked for, in milliseconds, or undefined if it asked for none. */
  get retryAfterMs(): number | undefined {
    const leftMs = this.#dueMs - this.#system.monotonicMs();
    return this.#isAsked && leftMs > 0 ? leftMs : undefined;
  }

  /** When a caller's wait ends, on the monotonic clock: by its own budget in an outage, by the shared one at a rate limit. */
  endsMs(outage: OutageWait | null): number {
    if (isRateLimit(this.#failure)) return this.#sharedEndsMs;
    return outage?.endsMs ?? Number.POSITIVE_INFINITY;
  }

  /** The budget of an outage that begins for a caller now, in milliseconds. */
  get budgetMs(): number {
    const leftMs = this.#sharedEndsMs - this.#system.monotonicMs();
    return isRateLimit(this.#failure) ? Math.max(0, leftMs) : this.#outageMs;
  }

  /** When the budget ends that all callers share while a rate limit refuses them, on the monotonic clock. */
  get #sharedEndsMs(): number {
    return (this.#limitedMs ?? this.#system.monotonicMs()) + this.#outageMs;
  }

  /** Whether that budget counts: a rate limit has refused a call since the model last answered. */
  get isLimited(): boolean {
    return this.#limitedMs !== null;
  }

  /** Starts that budget at the first rate limit, and ends it at an answer. Every call's outcome is reported here. */
  onOutcome(outcome: CallOutcome): void {
    if (outcome === 'answered') this.#limitedMs = null;
    else if (outcome !== 'unknown' && isRateLimit(outcome)) this.#limitedMs ??= this.#system.monotonicMs();
  }

  get #backoff(): Backoff {
    return isRateLimit(this.#failure) ? RATE_LIMIT_BACKOFF : BACKOFF;
  }

  get #isDue(): boolean {
    return this.#system.monotonicMs() >= this.#dueMs;
  }

  /** Whether the failure is out of date, because no caller has probed for so long. */
  get isForgotten(): boolean {
    const isOld = this.#system.monotonicMs() > this.#dueMs + MEMORY_MS;
    return isOld && this.#probes === 0 && this.#waiting.size === 0;
  }

  /**
   * Whether a caller whose budget ends at `endsMs` may probe now: when a probe is due, or at the end of its budget.
   *
   * @param cameMs when it came, if it has met no outage: it probes once even if the shared budget had ended before
   */
  mayProbe(endsMs: number, cameMs: number | null): boolean {
    const nowMs = this.#system.monotonicMs();
    const isLast = endsMs <= nowMs && this.#askedUntilMs <= nowMs && this.#probes === 0;
    return this.#isDue || (isLast && this.#failedMs < Math.max(endsMs, cameMs ?? endsMs));
  }

  /** Whether the outage has outlasted a budget that ends at `endsMs`. A probe under way is waited for. */
  hasOutlasted(endsMs: number): boolean {
    return endsMs <= this.#system.monotonicMs() && this.#probes === 0;
  }

  /** Begins a probe. If it hangs, the next probe is due after the longest wait between two. */
  beginProbe(): void {
    this.#probes += 1;
    this.#setDue(this.#backoff.longestMs);
    this.#isAsked = false;
  }

  endProbe(): void {
    this.#probes -= 1;
  }

  /** The server is out, still or again. */
  fail(failure: ModelFailed): void {
    this.onOutcome(failure);
    // A probe without an answer, such as a timeout, says less than the failure before.
    if (isOutage(failure.data.kind)) this.#failure = failure;
    const waitMs = backoffMs(this.#backoff, this.#failures + 1);
    // At least half of the wait: with full jitter some waits would be near zero.
    const drawnMs = (waitMs * (1 + this.#system.random())) / 2;
    const askedMs = honouredMs(failure.data.retryAfterMs);
    this.#failures += 1;
    this.#failedMs = this.#system.monotonicMs();
    this.#isAsked = askedMs >= drawnMs;
    this.#askedUntilMs = this.#failedMs + askedMs;
    this.#setDue(Math.max(drawnMs, askedMs));
  }

  /** Makes the next probe due now. */
  retryNow(): void {
    this.#setDue(0);
  }

  /** Resolves when a probe is due or has ended, at the latest when the budget ends or the signal aborts. */
  wait(endsMs: number, signal: CancelSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        if (this.#waiting.size === 0) this.#stopTimer();
        cancelBudget();
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const leftMs = endsMs - this.#system.monotonicMs();
      const cancelBudget = leftMs > 0 ? this.#system.after(leftMs, wake) : () => undefined;
      signal.addEventListener('abort', wake);
      this.#waiting.add(wake);
      this.#cancelTimer ??= this.#system.after(this.#dueMs - this.#system.monotonicMs(), () => this.retryNow());
    });
  }

  /** Wakes all waiting callers. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #setDue(inMs: number): void {
    this.#dueMs = this.#system.monotonicMs() + inMs;
    this.#stopTimer();
    this.wake();
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}

function isRateLimit({ data }: ModelFailed): boolean {
  return data.kind === 'rate_limited';
}
