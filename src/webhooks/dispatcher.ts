/**
 * Decides which webhooks this instance delivers: it claims those that no live instance delivers, in the stream of their
 * deliveries.
 */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { categoryOf } from '../eventlog/port.js';
import { LogClosed, LogUnavailable, RevisionConflict } from '../eventlog/errors.js';
import type { RunState } from '../run/state.js';
import { semaphore } from '../system/async/semaphore.js';
import { settledWithin } from '../system/async/deadline.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { AttemptDeps } from './attempt.js';
import { attempt } from './attempt.js';
import { Intake } from './intake.js';
import type { Claimed } from './claim.js';
import { claimDeliveries } from './claim.js';
import type { Delivery } from './deliveries.js';
import { WebhookCorrupt } from './errors.js';
import { deliveringWebhookOf, deliveryEventReader } from './events.js';
import type { Messages } from './message.js';
import { Outbox } from './outbox.js';
import { Pace } from './pace.js';
import { retryDelivery } from './retry-delivery.js';
import type { DeliveryIds } from './retry-delivery.js';
import type { Webhook } from './state.js';
import type { WebhookStore } from './store.js';

/** Time between two checks for webhooks that no instance delivers, in milliseconds. */
const CHECK_MS = 1_000;
/** Claims at once. */
const MAX_CLAIMS = 16;
/** Attempts at once beyond the first of each webhook. */
const MAX_PLACES = 128;
/** How long a stop waits for attempts in progress, in milliseconds. */
const STOP_MS = 2_000;

export interface DispatcherDeps extends Omit<AttemptDeps, 'messages' | 'system'> {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly store: WebhookStore;
  readonly messages: Messages;
  readonly corruptRuns: { has(runId: string): boolean };
  /** How this instance sees the others. Without others, every other owner is a process that has ended. */
  readonly members: {
    isSuspect(instanceId: string): boolean;
    isInTurn(webhookId: string): boolean;
    /** Whether this instance may have been replaced. */
    isFenced(): boolean;
  };
  readonly logger: Logger;
}

export class Dispatcher {
  readonly categories = ['run', 'webhook', 'delivery'];
  readonly #deps: DispatcherDeps;
  /** By webhook, those that this instance delivers. */
  readonly #outboxes = new Map<string, Outbox>();
  /** Last known owner of each webhook, if it has one. */
  readonly #owners = new Map<string, string>();
  readonly #claiming = new Set<string>();
  /** Webhooks whose deliveries cannot be read. */
  readonly #corrupt = new Set<string>();
  readonly #claims = semaphore(MAX_CLAIMS);
  readonly #tasks = new TaskTracker();
  #freePlaces = MAX_PLACES;
  #isCheckDue = false;
  readonly #intake: Intake;
  readonly #pace: Pace;
  #cancelCheck: () => void = () => undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#pace = new Pace(deps.system);
    this.#intake = new Intake({
      ...deps,
      outboxes: () => this.#outboxes.values(),
      onFault: (error) => this.#report(null, error),
    });
    deps.store.onChange(() => this.#checkSoon());
  }

  /** Delivers from now on. */
  start(): void {
    const { system } = this.#deps;
    if (this.#tasks.isEnding) return;
    this.#cancelCheck();
    this.#check();
    this.#cancelCheck = system.after(CHECK_MS, () => this.start());
  }

  /** Number of webhooks that this instance delivers. */
  get owned(): number {
    return this.#outboxes.size;
  }

  /** See `retryDelivery`. */
  async retry({ webhookId, deliveryId }: DeliveryIds, actor: string | null): Promise<Delivery> {
    const { signal } = this.#tasks;
    const webhook = await this.#deps.store.find(webhookId);
    const delivery = await retryDelivery(webhook, { deliveryId, actor }, { deps: this.#deps, signal });
    this.#outboxes.get(webhookId)?.onAppended();
    return delivery;
  }

  onEventRecorded(event: RecordedEvent): void {
    const category = categoryOf(event.stream);
    if (category === 'webhook') this.#deps.store.onEventRecorded(event);
    else if (category === 'delivery') this.#onDelivery(event);
  }

  onRunFolded(event: RecordedEvent, run: RunState): void {
    this.#intake.onRunFolded(event, run);
  }

  /** Waits shortly for attempts in progress, abandons the rest, and waits for the records in flight. */
  async stop(): Promise<void> {
    const { system } = this.#deps;
    this.#cancelCheck();
    this.#pace.stop();
    const ended = Promise.all([this.#tasks.end(), this.#intake.stop()]);
    const outboxes = [...this.#outboxes.values()];
    await settledWithin(Promise.all(outboxes.map((each) => each.finish())), { system, maxMs: STOP_MS });
    await Promise.all([ended, ...outboxes.map((each) => each.stop())]);
  }

  #onDelivery(event: RecordedEvent): void {
    const webhookId = deliveringWebhookOf(event.stream);
    if (webhookId === null || event.metadata['instanceId'] === this.#deps.instanceId) return;
    const owner = ownerIn(event);
    if (owner !== null) this.#owners.set(webhookId, owner);
    this.#outboxes.get(webhookId)?.onAppended();
  }

  /** Checks once for all changes of this turn of the event loop. */
  #checkSoon(): void {
    if (this.#isCheckDue) return;
    this.#isCheckDue = true;
    this.#deps.system.soon(() => this.#check());
  }

  #check(): void {
    const { store, members } = this.#deps;
    this.#isCheckDue = false;
    if (this.#tasks.isEnding) return;
    // What this instance knows of the deliveries may be out of date: it claims them again, if no other instance has.
    const isFenced = members.isFenced();
    for (const [webhookId, outbox] of this.#outboxes) {
      if (isFenced || !isActive(store.known(webhookId))) this.#drop(outbox);
    }
    for (const webhookId of this.#owners.keys()) if (store.known(webhookId) === null) this.#owners.delete(webhookId);
    if (isFenced) return;
    for (const webhook of store.all()) {
      if (isActive(webhook) && this.#mayClaim(webhook.id)) void this.#tasks.track(this.#claim(webhook));
    }
  }

  #drop(outbox: Outbox): void {
    this.#outboxes.delete(outbox.webhookId);
    void outbox.stop();
  }

  #mayClaim(webhookId: string): boolean {
    const { members } = this.#deps;
    if (this.#outboxes.has(webhookId) || this.#claiming.has(webhookId) || this.#corrupt.has(webhookId)) return false;
    const owner = this.#owners.get(webhookId);
    return (owner === undefined || this.#isFree(owner)) && members.isInTurn(webhookId);
  }

  #isFree(owner: string): boolean {
    const { members, instanceId } = this.#deps;
    return owner === instanceId || members.isSuspect(owner);
  }

  async #claim(webhook: Webhook): Promise<void> {
    this.#claiming.add(webhook.id);
    try {
      await this.#claims.run(() => this.#claimNow(webhook));
    } catch (error) {
      if (error instanceof WebhookCorrupt) this.#corrupt.add(webhook.id);
      this.#report(webhook.id, error);
    } finally {
      this.#claiming.delete(webhook.id);
    }
    this.#intake.wake();
  }

  async #claimNow(webhook: Webhook): Promise<void> {
    const { id } = webhook;
    const { signal } = this.#tasks;
    if (signal.aborted) return;
    const claimed = await claimDeliveries(webhook, {
      deps: this.#deps,
      isFree: (owner) => this.#isFree(owner),
      signal,
    });
    this.#owners.set(id, 'owner' in claimed ? claimed.owner : this.#deps.instanceId);
    if ('owner' in claimed || this.#tasks.isEnding || !isActive(this.#deps.store.known(id))) return;
    const outbox = this.#outboxFor(webhook, claimed);
    this.#outboxes.set(id, outbox);
    outbox.pump();
  }

  #outboxFor({ id }: Webhook, { state, place }: Claimed): Outbox {
    const { log, system, instanceId, store, members } = this.#deps;
    const outbox = new Outbox(id, {
      state,
      place,
      deps: {
        ...{ log, system, instanceId, maySend: () => !members.isFenced() },
        mayStart: (callBack) => this.#pace.take(callBack),
        attempt: (delivery, signal) => {
          const webhook = store.known(id);
          if (webhook === null) return Promise.reject(new Error(`Webhook "${id}" is deleted`));
          return attempt(webhook, delivery, { deps: this.#deps, signal });
        },
        places: { take: () => this.#takePlace(), free: () => void (this.#freePlaces += 1) },
        onGone: (deliveryId) => this.#disable(id, deliveryId),
        onRoom: () => this.#intake.wake(),
        onEnd: (error) => {
          if (this.#outboxes.get(id) === outbox) this.#outboxes.delete(id);
          if (error !== null && isActive(store.known(id))) this.#report(id, error);
        },
      },
    });
    return outbox;
  }

  #takePlace(): boolean {
    if (this.#freePlaces === 0) return false;
    this.#freePlaces -= 1;
    return true;
  }

  #disable(webhookId: string, deliveryId: string): void {
    const { store, logger } = this.#deps;
    logger.error({ webhookId }, 'webhook: disabled, because its receiver answered 410');
    void this.#tasks
      .track(store.disable(webhookId, deliveryId))
      .catch((error: unknown) => this.#report(webhookId, error));
  }

  /** Reports no outage of the log, because the log has lines of its own for that. */
  #report(webhookId: string | null, err: unknown): void {
    const isExpected = [RevisionConflict, LogUnavailable, LogClosed].some((expected) => err instanceof expected);
    if (this.#tasks.isEnding || isExpected) return;
    const what = err instanceof WebhookCorrupt ? 'its deliveries are corrupt' : 'failed; trying again';
    this.#deps.logger.error({ ...(webhookId !== null && { webhookId }), err }, `webhook: ${what}`);
  }
}

function isActive(webhook: Webhook | null): webhook is Webhook {
  return webhook !== null && !webhook.isDisabled;
}

/** The new owner in an event of a stream of deliveries, or null if it claims nothing or cannot be read. */
function ownerIn(recorded: RecordedEvent): string | null {
  try {
    const event = deliveryEventReader.eventOf(recorded);
    return event.type === 'DeliveriesClaimed' ? event.data.owner : null;
  } catch {
    return null;
  }
}
