/**
 * Delivers the webhooks that this instance owns: an outbox for each, which the intake gives the events of runs. Checks every
 * second which webhooks it should claim, and which it should no longer deliver.
 */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { categoryOf } from '../eventlog/port.js';
import type { RunState } from '../run/state.js';
import { TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import type { AttemptDeps } from './attempt.js';
import { ERASED, attempt, isGone } from './attempt.js';
import type { Claimed } from './claim.js';
import type { Delivery } from './deliveries.js';
import { deliveringWebhookOf } from './events.js';
import { Intake } from './intake.js';
import type { Messages } from './message.js';
import { Outbox } from './outbox.js';
import type { OwnershipDeps } from './ownership.js';
import { Ownership } from './ownership.js';
import { Pace } from './pace.js';
import type { Reports } from './reports.js';
import { isExpected } from './reports.js';
import { retryDelivery } from './retry-delivery.js';
import type { DeliveryIds } from './retry-delivery.js';
import type { Webhook } from './state.js';
import type { WebhookStore } from './store.js';

/** Time between two checks for webhooks that no instance delivers, in milliseconds. */
const CHECK_MS = 1_000;
/** Attempts at once beyond the first of each webhook. */
const MAX_PLACES = 128;

export interface DispatcherDeps extends Omit<AttemptDeps, 'messages' | 'system'> {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly store: WebhookStore;
  readonly messages: Messages;
  readonly corruptRuns: { has(runId: string): boolean };
  readonly members: OwnershipDeps['members'] & {
    /** Whether this instance may have been replaced. */
    isFenced(): boolean;
  };
  readonly reports: Reports;
}

/** What this instance does for webhooks. */
export interface WebhookFigures {
  /** Attempts that have ended, by result. */
  readonly attempts: { readonly delivered: number; readonly retried: number; readonly failed: number };
  /** Webhooks of the log, by state. */
  readonly webhooks: { readonly active: number; readonly disabled: number; readonly corrupt: number };
  /** Deliveries that wait in memory. */
  readonly waiting: number;
  /** The earliest first attempt at one of these deliveries, ISO 8601, or null if none was attempted. */
  readonly waitingSince: string | null;
}

export class Dispatcher {
  readonly categories = ['run', 'webhook', 'delivery'];
  readonly #deps: DispatcherDeps;
  /** The outboxes of the webhooks that this instance delivers, by id. */
  readonly #outboxes = new Map<string, Outbox>();
  readonly #ownership: Ownership;
  readonly #tasks = new TaskTracker();
  readonly #attempts = { delivered: 0, retried: 0, failed: 0 };
  #freePlaces = MAX_PLACES;
  #isCheckDue = false;
  readonly #intake: Intake;
  readonly #pace: Pace;
  #cancelCheck: () => void = () => undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#ownership = new Ownership(deps);
    this.#pace = new Pace(deps.system);
    this.#intake = new Intake({ ...deps, outboxes: () => this.#outboxes.values() });
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

  figures(): WebhookFigures {
    const all = this.#deps.store.all();
    const usable = all.filter(({ id }) => !this.#ownership.isCorrupt(id));
    const disabled = usable.filter(({ isDisabled }) => isDisabled).length;
    const corrupt = this.#deps.store.corrupt + all.length - usable.length;
    const waiting = [...this.#outboxes.values()].flatMap(({ backlog }) => backlog.waiting);
    const since = waiting.flatMap(({ firstAttemptAt }) => firstAttemptAt ?? []);
    return {
      attempts: { ...this.#attempts },
      webhooks: { active: usable.length - disabled, disabled, corrupt },
      waiting: waiting.length,
      waitingSince: since.length === 0 ? null : since.reduce((one, other) => (one < other ? one : other)),
    };
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

  /** Releases the webhooks, see `Outbox.release`. */
  async stop(): Promise<void> {
    this.#cancelCheck();
    this.#pace.stop();
    const ended = Promise.all([this.#tasks.end(), this.#intake.stop()]);
    await this.#releaseAll();
    await ended;
    // A claim that was in progress has added its outbox.
    await this.#releaseAll();
  }

  async #releaseAll(): Promise<void> {
    const outboxes = [...this.#outboxes.values()];
    this.#outboxes.clear();
    await Promise.all(outboxes.map((each) => each.release()));
  }

  #onDelivery(event: RecordedEvent): void {
    const webhookId = deliveringWebhookOf(event.stream);
    if (webhookId === null) return;
    if (this.#ownership.onRecorded(webhookId, event)) this.#checkSoon();
    if (event.metadata['instanceId'] !== this.#deps.instanceId) this.#outboxes.get(webhookId)?.onAppended();
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
    // While this instance is fenced, others may claim its webhooks. Afterwards it claims those that no other has claimed.
    const isFenced = members.isFenced();
    for (const [webhookId, outbox] of this.#outboxes) {
      if (isFenced || !isActive(store.known(webhookId))) this.#drop(outbox);
    }
    this.#ownership.forget((webhookId) => store.known(webhookId) !== null);
    if (isFenced) return;
    for (const webhook of store.all()) {
      if (!isActive(webhook) || this.#outboxes.has(webhook.id) || !this.#ownership.mayClaim(webhook.id)) continue;
      void this.#tasks.track(this.#claim(webhook));
    }
  }

  #drop(outbox: Outbox): void {
    this.#outboxes.delete(outbox.webhookId);
    void outbox.stop();
  }

  async #claim(webhook: Webhook): Promise<void> {
    const claimed = await this.#ownership.claim(webhook, this.#tasks.signal);
    if (claimed === null || !isActive(this.#deps.store.known(webhook.id))) return;
    const outbox = this.#outboxFor(webhook, claimed);
    this.#outboxes.set(webhook.id, outbox);
    // If this instance stops, it releases the webhook next.
    if (this.#tasks.isEnding) return;
    outbox.pump();
    this.#intake.wake();
  }

  #outboxFor({ id }: Webhook, { state, place }: Claimed): Outbox {
    const { log, system, instanceId, store, members, reports } = this.#deps;
    const outbox = new Outbox(id, {
      state,
      place,
      deps: {
        log,
        system,
        instanceId,
        pace: this.#pace,
        maySend: () => !members.isFenced(),
        attempt: (delivery, signal) => this.#attempt(id, delivery, signal),
        places: { take: () => this.#takePlace(), free: () => void (this.#freePlaces += 1) },
        onGone: (deliveryId) => this.#disable(id, deliveryId),
        onRoom: () => this.#intake.wake(),
        onEnd: (error) => {
          if (this.#outboxes.get(id) === outbox) this.#outboxes.delete(id);
          const webhook = store.known(id);
          if (error === null || !isActive(webhook)) return;
          if (!isExpected(error)) this.#ownership.rest(id);
          reports.failed('deliver', error, webhook);
        },
      },
    });
    return outbox;
  }

  async #attempt(webhookId: string, before: Delivery, signal: AbortSignal): Promise<Delivery> {
    const { store, reports } = this.#deps;
    const webhook = store.known(webhookId);
    if (webhook === null) throw new Error(`Webhook "${webhookId}" is deleted`);
    const attempted = await attempt(webhook, before, { deps: this.#deps, signal });
    const { status } = attempted;
    this.#attempts[status === 'waiting' ? 'retried' : status] += 1;
    if (status === 'failed' && !isGone(attempted) && attempted.error !== ERASED) reports.abandoned(webhook, attempted);
    return attempted;
  }

  #takePlace(): boolean {
    if (this.#freePlaces === 0) return false;
    this.#freePlaces -= 1;
    return true;
  }

  #disable(webhookId: string, deliveryId: string): void {
    const { store, reports } = this.#deps;
    const webhook = store.known(webhookId);
    if (webhook === null) return;
    reports.gone(webhook);
    const disabling = store.disable(webhookId, deliveryId);
    void this.#tasks.track(disabling).catch((error: unknown) => reports.failed('disable', error, webhook));
  }
}

function isActive(webhook: Webhook | null): webhook is Webhook {
  return webhook !== null && !webhook.isDisabled;
}
