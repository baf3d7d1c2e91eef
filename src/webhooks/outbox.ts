/**
 * The deliveries of one webhook, on the instance that owns them. It attempts those that are due, in order within each run,
 * and records every result before it attempts the run's next delivery. The revision of the record is the fence: if another
 * instance has taken the webhook, the record fails, and this outbox ends.
 */
import type { EventLog, Position } from '../eventlog/port.js';
import { Sequencer } from '../system/async/sequencer.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import type { System } from '../system/system.js';
import type { Attempted } from './attempt.js';
import type { Deliveries, Delivery, RunEventRef } from './deliveries.js';
import { newDelivery } from './deliveries.js';
import { DeliveriesTaken, DeliveryRecord } from './delivery-record.js';
import type { DeliveryFact } from './events.js';

/** Most deliveries that wait in memory for one webhook. Later events stay in the log until half of them have ended. */
export const MAX_WAITING = 100;
/** Attempts at once while the receiver succeeds; after a failure, and at first, it gets one at a time. */
const MAX_SENDING = 8;
/** Events of runs after which the place in the log is recorded, if no delivery has recorded it. */
const PLACE_EVERY = 50_000;
/** Wait while this instance may not send, in milliseconds. */
const BLOCKED_MS = 1_000;
/** Longest timer, in milliseconds, so that a change of the clock delays no delivery for longer. */
const LONGEST_TIMER_MS = 60_000;

export interface OutboxDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly attempt: (delivery: Delivery, signal: AbortSignal) => Promise<Attempted>;
  /** Takes one of the places that all webhooks share for more than one attempt at once. Returns whether there was one. */
  readonly places: { take(): boolean; free(): void };
  /** Whether an attempt may start now. If not, calls back when it may. */
  readonly mayStart: (callBack: () => void) => boolean;
  /** Whether this instance may send now. */
  readonly maySend: () => boolean;
  /** Called when the receiver has answered 410. */
  readonly onGone: (deliveryId: string) => void;
  /** Called when there is room for further events again. */
  readonly onRoom: () => void;
  /** Called once when the outbox has ended by itself: with null if another instance has taken the webhook. */
  readonly onEnd: (error: unknown) => void;
}

/** An event of a run that a webhook may deliver. */
export interface OfferedEvent extends RunEventRef {
  readonly id: string;
  readonly type: string;
  readonly position: Position;
}

interface Fresh {
  readonly delivery: Delivery;
  readonly ref: RunEventRef;
}

export class Outbox {
  readonly webhookId: string;
  /** Whether it receives each event as it is recorded. Otherwise it reads the log from its place. */
  isLive = false;
  readonly #deps: OutboxDeps;
  readonly #record: DeliveryRecord;
  #place: Position;
  #placeRef: RunEventRef | null;
  /** Deliveries that are not recorded yet. */
  #fresh: readonly Fresh[] = [];
  /** Results that are not recorded yet, by delivery. */
  readonly #results = new Map<string, Delivery>();
  /** Ids of deliveries whose attempt has not ended or is not recorded. */
  readonly #sending = new Set<string>();
  readonly #records = new Sequencer();
  readonly #tasks = new TaskTracker();
  /** Whether the last attempt has succeeded. */
  #isHealthy = false;
  /** Whether the receiver has answered 410. */
  #isGone = false;
  #isFinishing = false;
  readonly #attempts = new Set<Promise<void>>();
  /** Whether an attempt waits for the turn of this webhook. */
  #isWaiting = false;
  readonly #wake = (): void => {
    this.#isWaiting = false;
    this.pump();
  };
  #unrecorded = 0;
  #cancelTimer: () => void = () => undefined;

  /** @param place position after which it considers events */
  constructor(webhookId: string, { state, place, deps }: { state: Deliveries; place: Position; deps: OutboxDeps }) {
    this.webhookId = webhookId;
    this.#deps = deps;
    this.#record = new DeliveryRecord(webhookId, { state, deps });
    this.#place = place;
    this.#placeRef = state.through;
  }

  /** Position up to which all events are considered. */
  get place(): Position {
    return this.#place;
  }

  get #waiting(): readonly Delivery[] {
    return [...this.#record.state.waiting, ...this.#fresh.map(({ delivery }) => delivery)];
  }

  get hasRoom(): boolean {
    return this.#record.state.waiting.length + this.#fresh.length < MAX_WAITING;
  }

  /** Whether it should read on, if it has stopped for lack of room. */
  get isHalfEmpty(): boolean {
    return this.#record.state.waiting.length + this.#fresh.length <= MAX_WAITING / 2;
  }

  /** Considers the next event of the log. The caller has checked that there is room. */
  consider({ id, type, position, ...ref }: OfferedEvent, isWanted: boolean): void {
    this.passTo(position);
    this.#placeRef = ref;
    this.#unrecorded += 1;
    if (isWanted) {
      this.#fresh = [...this.#fresh, { delivery: newDelivery(id, type, ref), ref }];
      this.pump();
    } else if (this.#unrecorded >= PLACE_EVERY) {
      this.#unrecorded = 0;
      void this.#recordResults({ isForPlace: true });
    }
  }

  /** All events up to a position are considered. */
  passTo(position: Position): void {
    if (position > this.#place) this.#place = position;
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
    void this.#inTurn(async () => {
      await this.#record.readOn();
      this.pump();
    });
  }

  /** Starts no further attempts; resolves once those in progress have ended and are recorded. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    await Promise.all(this.#attempts);
  }

  /** Abandons the attempts, and waits for the records in flight. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#tasks.end();
  }

  get #mostAtOnce(): number {
    return this.#isHealthy ? MAX_SENDING : 1;
  }

  /** The first delivery of each run, unless it is being attempted. */
  #firstOfRuns(): readonly Delivery[] {
    const runs = new Set<string>();
    return this.#waiting.filter(({ id, runId }) => {
      if (runs.has(runId)) return false;
      runs.add(runId);
      return !this.#sending.has(id);
    });
  }

  /** Returns whether there was a place for the attempt. The first needs none, so that no webhook waits for another. */
  #start(delivery: Delivery): boolean {
    const { places, mayStart } = this.#deps;
    const needsPlace = this.#sending.size > 0;
    if (this.#sending.size >= this.#mostAtOnce) return false;
    if (needsPlace && !places.take()) return false;
    if (!mayStart(this.#wake)) {
      this.#isWaiting = true;
      if (needsPlace) places.free();
      return false;
    }
    this.#sending.add(delivery.id);
    const attempt = this.#tasks.track(this.#attempt(delivery)).finally(() => {
      if (needsPlace) places.free();
      this.#sending.delete(delivery.id);
      this.#attempts.delete(attempt);
      this.pump();
      if (this.isHalfEmpty && !this.isLive) this.#deps.onRoom();
    });
    this.#attempts.add(attempt);
    return true;
  }

  async #attempt(before: Delivery): Promise<void> {
    const { signal } = this.#tasks;
    let attempted: Attempted;
    try {
      attempted = await this.#deps.attempt(before, signal);
    } catch (error) {
      return this.#end(error);
    }
    const { delivery, isGone } = attempted;
    this.#isHealthy = delivery.status === 'delivered';
    this.#isGone ||= isGone;
    this.#results.set(delivery.id, delivery);
    await this.#recordResults();
    if (isGone) this.#deps.onGone(delivery.id);
  }

  /** Records all results so far. Those that come meanwhile are recorded together by the next call. */
  #recordResults({ isForPlace = false } = {}): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#results.size === 0 && !isForPlace) return;
      const results = new Map(this.#results);
      const known = isForPlace ? this.#fresh : this.#freshUpTo(results);
      const through = isForPlace ? this.#placeRef : (known.at(-1)?.ref ?? this.#record.state.through);
      const unattempted = known.map(({ delivery }) => delivery).filter(({ id }) => !results.has(id));
      const fact: DeliveryFact = {
        type: 'DeliveriesChanged',
        data: { through, changed: [...unattempted, ...results.values()] },
      };
      await this.#record.append(fact, this.#tasks.signal);
      this.#fresh = this.#fresh.slice(known.length);
      for (const id of results.keys()) this.#results.delete(id);
      this.#unrecorded = 0;
    });
  }

  /** The unrecorded deliveries up to the last one with a result: the record places the outbox after them. */
  #freshUpTo(results: ReadonlyMap<string, Delivery>): readonly Fresh[] {
    return this.#fresh.slice(0, this.#fresh.findLastIndex(({ delivery }) => results.has(delivery.id)) + 1);
  }

  async #inTurn(task: () => Promise<void>): Promise<void> {
    try {
      await this.#tasks.track(this.#records.run(task));
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
