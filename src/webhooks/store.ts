/**
 * The webhooks of a log. Each has a stream of its own, and one stream names them all; every instance folds them in memory.
 * Every change is appended at the exact revision that it was decided on.
 */
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { appendFacts, changeAggregate } from '../eventsourcing/aggregate.js';
import type { SealedEvent } from '../eventsourcing/hash-chain.js';
import { retryWhileUnavailable } from '../eventlog/port.js';
import { KeyedSequencer, TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import { TooManyWebhooks, WebhookCorrupt, WebhookUnknown, WebhooksContended } from './errors.js';
import type { WebhookFact, WebhookListFact } from './events.js';
import { WEBHOOK_LIST_STREAM, webhookIdOf, webhookStream } from './events.js';
import { WebhookList } from './list.js';
import { secretOf } from './signature.js';
import type { Registration, Webhook } from './state.js';
import { evolveWebhook, readWebhookOn } from './state.js';

/** Largest number of webhooks of a log. */
const MAX_WEBHOOKS = 1_000;
/** The conflicts with other instances at which a change fails, and its error. */
const CONTENDED = { conflicts: 50, error: (cause: Error): Error => new WebhooksContended({ cause }) };
/** Webhooks that are read at once at the start. */
const READ_AT_ONCE = 16;

export interface WebhookStoreDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** Called for a corrupt record, and for a read in the background that failed. */
  readonly onFault: (error: unknown) => void;
}

export class WebhookStore {
  readonly #deps: WebhookStoreDeps;
  /** By id, without deleted ones. */
  readonly #webhooks = new Map<string, Webhook>();
  /** The errors of webhooks whose record cannot be read, by id. */
  readonly #corrupt = new Map<string, WebhookCorrupt>();
  readonly #list: WebhookList;
  /** Tasks on one stream run one after the other, so that they do not conflict with each other. */
  readonly #tasksOf = new KeyedSequencer();
  readonly #tasks = new TaskTracker();
  #onChange: () => void = () => undefined;
  #loaded: Promise<void> = Promise.resolve();

  constructor(deps: WebhookStoreDeps) {
    this.#deps = deps;
    this.#list = new WebhookList(deps);
  }

  /** Calls back after each change. */
  onChange(callback: () => void): void {
    this.#onChange = callback;
  }

  /** Reads all webhooks that can be read; waits while the log is unavailable. */
  load(): Promise<void> {
    const { system, onFault } = this.#deps;
    const { signal } = this.#tasks;
    const reading = retryWhileUnavailable(() => this.#readList(), { system, signal }).catch((error: unknown) => {
      if (!(error instanceof WebhookCorrupt)) throw error;
      onFault(error);
    });
    this.#loaded = this.#tasks.track(reading);
    return this.#loaded;
  }

  /** All webhooks that can be read, the oldest first. */
  async list(): Promise<readonly Webhook[]> {
    await this.#loaded;
    return this.all();
  }

  /** The webhooks that are read so far, the oldest first. */
  all(): readonly Webhook[] {
    return [...this.#webhooks.values()].sort((one, other) => (one.registeredAt < other.registeredAt ? -1 : 1));
  }

  /** Number of webhooks whose record cannot be read. */
  get corrupt(): number {
    return this.#corrupt.size;
  }

  /** The webhook as this instance knows it, or null if it knows none. */
  known(webhookId: string): Webhook | null {
    return this.#webhooks.get(webhookId) ?? null;
  }

  /** The webhook; reads the log for one that another instance may have just registered. @throws {WebhookUnknown | WebhookCorrupt} */
  async find(webhookId: string): Promise<Webhook> {
    await this.#loaded;
    if (!this.#webhooks.has(webhookId)) await this.#readList();
    return this.#present(webhookId);
  }

  /** @throws {TooManyWebhooks | WebhooksContended} */
  async register({ url, types, blueprintId }: Registration, actor: string | null): Promise<Webhook> {
    const { system } = this.#deps;
    const id = system.uuid();
    await this.#loaded;
    this.#assertRoom();
    const secret = secretOf(system.secret());
    const data = { url, types: [...types], blueprintId, secret, actor };
    // The stream is written before the list, so that every webhook in the list can be read.
    const facts = [{ type: 'WebhookRegistered', data }] as const;
    const registering = { stream: webhookStream(id), subject: id, head: null, facts };
    const registered = await appendFacts(this.#deps, registering, this.#tasks.signal);
    await this.#changeList(() => {
      this.#assertRoom();
      return [{ type: 'WebhookListed', data: { webhookId: id } }];
    });
    return this.#adopt(webhookAfter(null, { webhookId: id, ...registered }));
  }

  /** Gives the webhook a new secret. @throws {WebhookUnknown | WebhooksContended} */
  rotate(webhookId: string, actor: string | null): Promise<Webhook> {
    const secret = secretOf(this.#deps.system.secret());
    return this.#change(webhookId, () => [{ type: 'WebhookSecretRotated', data: { secret, actor } }]);
  }

  /** Ends all deliveries of a webhook, which stays in the list. */
  disable(webhookId: string, deliveryId: string): Promise<Webhook> {
    return this.#change(webhookId, ({ isDisabled }) =>
      isDisabled ? [] : [{ type: 'WebhookDisabled', data: { deliveryId } }],
    );
  }

  /** @throws {WebhookUnknown | WebhooksContended} */
  async remove(webhookId: string, actor: string | null): Promise<void> {
    await this.#change(webhookId, () => [{ type: 'WebhookDeleted', data: { actor } }]);
    await this.#changeList(() => [{ type: 'WebhookUnlisted', data: { webhookId } }]);
  }

  /** The caller must pass every event of the log in the category `webhook`. Skips events of this instance. */
  onEventRecorded({ stream, revision, metadata }: RecordedEvent): void {
    if (metadata['instanceId'] === this.#deps.instanceId) return;
    const webhookId = webhookIdOf(stream);
    if (webhookId === null) {
      if (revision > this.#list.seq) this.#inBackground(() => this.#readList());
    } else if ((this.#webhooks.get(webhookId)?.head.seq ?? revision) < revision)
      this.#inBackground(() => this.#readWebhook(webhookId));
  }

  /** Waits until the log has answered the changes in flight. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  #present(webhookId: string): Webhook {
    const webhook = this.#webhooks.get(webhookId);
    if (webhook === undefined) throw this.#corrupt.get(webhookId) ?? new WebhookUnknown({ webhookId });
    return webhook;
  }

  #assertRoom(): void {
    if (this.#webhooks.size >= MAX_WEBHOOKS) throw new TooManyWebhooks({ limit: MAX_WEBHOOKS });
  }

  #inBackground(read: () => Promise<void>): void {
    const { system, onFault } = this.#deps;
    const { signal } = this.#tasks;
    this.#tasks.track(retryWhileUnavailable(read, { system, signal })).catch((error: unknown) => {
      if (!this.#tasks.isEnding) onFault(error);
    });
  }

  /** @param decide returns the events to record, or none if nothing changes */
  async #change(webhookId: string, decide: (webhook: Webhook) => readonly WebhookFact[]): Promise<Webhook> {
    await this.find(webhookId);
    const read = async (): Promise<Webhook> => {
      await this.#readWebhook(webhookId);
      return this.#present(webhookId);
    };
    const stream = webhookStream(webhookId);
    const change = { stream, subject: webhookId, read, headOf: ({ head }: Webhook) => head, decide, limit: CONTENDED };
    return await this.#inTurn(stream, async () => {
      const { before, recorded, position } = await changeAggregate(this.#deps, change, this.#tasks.signal);
      return position === null ? before : this.#adopt(webhookAfter(before, { webhookId, recorded, position }));
    });
  }

  async #changeList(decide: () => readonly WebhookListFact[]): Promise<void> {
    const change = {
      stream: WEBHOOK_LIST_STREAM,
      subject: 'all',
      decide,
      limit: CONTENDED,
      read: () => this.#readListOn(),
      headOf: () => this.#list.head,
    };
    await this.#inTurn(WEBHOOK_LIST_STREAM, async () => {
      const { recorded } = await changeAggregate(this.#deps, change, this.#tasks.signal);
      this.#list.head = recorded.at(-1) ?? this.#list.head;
    });
  }

  #inTurn<T>(stream: string, work: () => Promise<T>): Promise<T> {
    if (this.#tasks.isEnding) throw new ServiceStopping();
    return this.#tasks.track(this.#tasksOf.run(stream, work));
  }

  /** Replaces the known state of a webhook. */
  #adopt(webhook: Webhook): Webhook {
    if (webhook.isDeleted) this.#webhooks.delete(webhook.id);
    else this.#webhooks.set(webhook.id, webhook);
    this.#onChange();
    return webhook;
  }

  #readList(): Promise<void> {
    return this.#tasksOf.run(WEBHOOK_LIST_STREAM, () => this.#readListOn());
  }

  /** Reads what is new in the list, and the webhooks that it names. @throws {WebhookCorrupt} a page of the log is corrupt */
  async #readListOn(): Promise<void> {
    await this.#list.readOn(async (ids) => {
      for (let from = 0; from < ids.length; from += READ_AT_ONCE)
        await Promise.all(ids.slice(from, from + READ_AT_ONCE).map((id) => this.#readListed(id)));
    });
  }

  /** A webhook whose record is corrupt is not shown. */
  async #readListed(webhookId: string): Promise<void> {
    try {
      await this.#readWebhook(webhookId);
    } catch (error) {
      if (!(error instanceof WebhookCorrupt)) throw error;
      this.#corrupt.set(webhookId, error);
      this.#deps.onFault(error);
    }
  }

  /** Reads what is new in the webhook's stream. @throws {WebhookCorrupt} */
  async #readWebhook(webhookId: string): Promise<void> {
    const webhook = await readWebhookOn(this.#deps, webhookId, this.known(webhookId));
    if (webhook !== null && (this.known(webhookId)?.head.seq ?? -1) < webhook.head.seq) this.#adopt(webhook);
  }
}

/** The webhook after recorded events. @throws {WebhookUnknown} it was never registered */
function webhookAfter(
  before: Webhook | null,
  { webhookId, recorded, position }: Recorded & { readonly webhookId: string },
): Webhook {
  const webhook = recorded.reduce((state, event) => evolveWebhook(state, { ...event, position }, webhookId), before);
  if (webhook === null) throw new WebhookUnknown({ webhookId });
  return webhook;
}

interface Recorded {
  readonly recorded: readonly SealedEvent<WebhookFact>[];
  readonly position: Position;
}
