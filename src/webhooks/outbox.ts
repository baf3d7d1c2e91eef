/**
 * The deliveries of one webhook, on the instance that owns them. It attempts those that are due, in order within each run,
 * and records every result before it attempts the run's next delivery. The revision of the record is the fence: if another
 * instance has taken the webhook, the record fails, and this outbox ends.
 */
import type { Position } from '../eventlog/port.js';
import type { AppendDeps } from '../eventsourcing/aggregate.js';
import { settledWithin, untilDeadline } from '../system/async/deadline.js';
import { TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import { isGone } from './attempt.js';
import type { OfferedEvent } from './backlog.js';
import { Backlog } from './backlog.js';
import type { Deliveries, Delivery } from './deliveries.js';
import { DeliveriesTaken } from './delivery-record.js';
import type { Pace } from './pace.js';

/** Most attempts at once while the receiver succeeds. At first and after a failure, it gets one at a time. */
const MAX_SENDING = 8;
/** Wait while this instance may not send, in milliseconds. */
const BLOCKED_MS = 1_000;
/** Longest timer, in milliseconds, so that a change of the clock delays no delivery for longer. */
const LONGEST_TIMER_MS = 60_000;
/** How long a release waits for the attempts in progress, in milliseconds. */
const FINISH_MS = 2_000;
/**
 * How long a release waits for the log, in milliseconds. A webhook that is not released is claimed when the others suspect
 * this instance.
 */
const RELEASE_MS = 1_000;

export interface OutboxDeps extends AppendDeps {
  readonly system: System;
  readonly attempt: (delivery: Delivery, signal: AbortSignal) => Promise<Delivery>;
  /** Takes one of the places that all webhooks share for more than one attempt at once. Returns whether there was one. */
  readonly places: { take(): boolean; free(): void };
  /** Limits how many attempts all webhooks start in a second. */
  readonly pace: Pick<Pace, 'take'>;
  /** Whether this instance may send now. */
  readonly maySend: () => boolean;
  /** Called when the receiver has answered 410. */
  readonly onGone: (deliveryId: string) => void;
  /** Called when there is room for further events again. */
  readonly onRoom: () => void;
  /** Called once when the outbox has ended by itself: with null if another instance has taken the webhook. */
  readonly onEnd: (error: unknown) => void;
}

export class Outbox {
  readonly webhookId: string;
  /** Whether it receives each event as it is recorded. Otherwise it reads the log from its place. */
  isLive = false;
  readonly backlog: Backlog;
  readonly #deps: OutboxDeps;
  /** By delivery, the attempts that have not ended or are not recorded. */
  readonly #sending = new Map<string, Promise<void>>();
  readonly #tasks = new TaskTracker();
  /** Whether the last attempt has succeeded. */
  #isHealthy = false;
  /** Whether the receiver has answered 410. */
  #isGone = false;
  #isFinishing = false;
  /** Whether an attempt waits for the turn of this webhook. */
  #isWaiting = false;
  readonly #wake = (): void => {
    this.#isWaiting = false;
    this.pump();
  };
  #cancelTimer: () => void = () => undefined;

  /** @param place position after which it considers events */
  constructor(webhookId: string, { state, place, deps }: { state: Deliveries; place: Position; deps: OutboxDeps }) {
    this.webhookId = webhookId;
    this.#deps = deps;
    this.backlog = new Backlog(webhookId, { state, place, deps });
  }

  /** Considers the next event of the log. The caller has checked that there is room. */
  consider(event: OfferedEvent, isWanted: boolean): void {
    this.backlog.consider(event, isWanted);
    if (isWanted) this.pump();
    else if (this.backlog.isPlaceDue) void this.#record((signal) => this.backlog.recordPlace(signal));
  }

  /** Starts the attempts that are due. */
  pump(): void {
    if (this.#tasks.isEnding || this.#isFinishing || this.#isGone) return;
    // The end of an attempt, or its turn, calls this again.
    if (this.#sending.size >= this.#mostAtOnce || this.#isWaiting) return;
    if (!this.#deps.maySend()) return this.#pumpAfter(BLOCKED_MS);
    const nowMs = Date.parse(this.#deps.system.now());
    let nextMs = Number.POSITIVE_INFINITY;
    for (const delivery of this.#firstOfRuns()) {
      const dueMs = delivery.nextAttemptAt === null ? nowMs : Date.parse(delivery.nextAttemptAt);
      if (dueMs > nowMs) nextMs = Math.min(nextMs, dueMs);
      else if (!this.#start(delivery)) break;
    }
    this.#cancelTimer();
    if (nextMs !== Number.POSITIVE_INFINITY) this.#pumpAfter(Math.min(nextMs - nowMs, LONGEST_TIMER_MS));
  }

  #pumpAfter(waitMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.system.after(waitMs, () => this.pump());
  }

  /** Another instance has appended to the stream: a retry by a human, or a claim. */
  onAppended(): void {
    void this.#record(async () => {
      await this.backlog.readOn();
      this.pump();
    });
  }

  /** Abandons the attempts, and waits for the records in flight. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#tasks.end();
  }

  /** Waits FINISH_MS for the attempts in progress, abandons the others, and lets any instance claim the webhook. */
  async release(): Promise<void> {
    const { system } = this.#deps;
    this.#isFinishing = true;
    await settledWithin(Promise.all(this.#sending.values()), { system, maxMs: FINISH_MS });
    if (this.#tasks.isEnding) return;
    await this.stop();
    const releasing = untilDeadline((signal) => this.backlog.release(signal), { system, maxMs: RELEASE_MS });
    // If another instance has it, or the log is away, there is nothing more to do.
    await releasing.catch(() => undefined);
  }

  get #mostAtOnce(): number {
    return this.#isHealthy ? MAX_SENDING : 1;
  }

  /** The first delivery of each run, unless it is being attempted. */
  #firstOfRuns(): readonly Delivery[] {
    const runs = new Set<string>();
    return this.backlog.waiting.filter(({ id, runId }) => {
      if (runs.has(runId)) return false;
      runs.add(runId);
      return !this.#sending.has(id);
    });
  }

  /** Returns whether there was a place for the attempt. The first needs none, so that no webhook waits for another. */
  #start(delivery: Delivery): boolean {
    const { places, pace } = this.#deps;
    const needsPlace = this.#sending.size > 0;
    if (this.#sending.size >= this.#mostAtOnce) return false;
    if (needsPlace && !places.take()) return false;
    if (!pace.take(this.#wake)) {
      this.#isWaiting = true;
      if (needsPlace) places.free();
      return false;
    }
    const attempt = this.#tasks.track(this.#attempt(delivery)).finally(() => {
      if (needsPlace) places.free();
      this.#sending.delete(delivery.id);
      this.pump();
      if (this.backlog.isHalfEmpty && !this.isLive) this.#deps.onRoom();
    });
    this.#sending.set(delivery.id, attempt);
    return true;
  }

  async #attempt(before: Delivery): Promise<void> {
    const { signal } = this.#tasks;
    let delivery: Delivery;
    try {
      delivery = await this.#deps.attempt(before, signal);
    } catch (error) {
      return this.#end(error);
    }
    this.#isHealthy = delivery.status === 'delivered';
    const isFirstGone = isGone(delivery) && !this.#isGone;
    this.#isGone ||= isFirstGone;
    await this.#record(() => this.backlog.recordResult(delivery, signal));
    if (isFirstGone) this.#deps.onGone(delivery.id);
  }

  /** Runs a task on the record. If it fails, this outbox ends. */
  async #record(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await this.#tasks.track(task(this.#tasks.signal));
    } catch (error) {
      this.#end(error);
    }
  }

  #end(error: unknown): void {
    if (this.#tasks.isEnding) return;
    void this.stop();
    this.#deps.onEnd(error instanceof DeliveriesTaken ? null : error);
  }
}
