/**
 * Decides which webhooks this instance delivers. It claims a webhook that no live instance delivers, in the stream of its
 * deliveries.
 */
import type { RecordedEvent } from '../eventlog/port.js';
import type { AppendDeps } from '../eventsourcing/aggregate.js';
import { wait } from '../system/async/deadline.js';
import { semaphore } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import type { Claimed } from './claim.js';
import { claimDeliveries } from './claim.js';
import { WebhookCorrupt } from './errors.js';
import { deliveryEventOf } from './events.js';
import type { Reports } from './reports.js';
import type { Webhook } from './state.js';

/** Most claims at the same time. */
const MAX_CLAIMS = 16;
/** Random wait before an instance claims a webhook when it is not its turn, so that instances do not collide, in milliseconds. */
const OUT_OF_TURN_MS = { from: 250, to: 500 };
/**
 * How long this instance does not claim a webhook whose deliveries a fault has stopped, in milliseconds. Each claim repeats
 * the attempts whose results could not be recorded.
 */
const REST_MS = 60_000;

export interface OwnershipDeps extends AppendDeps {
  readonly system: System;
  /** How this instance sees the others. Without others, every other owner is a process that has ended. */
  readonly members: {
    isSuspect(instanceId: string): boolean;
    isInTurn(webhookId: string): boolean;
    /** Keeps suspecting the instances that are needed. */
    remember(isNeeded: (instanceId: string) => boolean): void;
  };
  readonly reports: Pick<Reports, 'failed' | 'succeeded'>;
}

export class Ownership {
  readonly #deps: OwnershipDeps;
  /** Last known owner of each webhook, if it has one. */
  readonly #owners = new Map<string, string>();
  readonly #claiming = new Set<string>();
  /** Webhooks whose deliveries cannot be read. */
  readonly #corrupt = new Set<string>();
  /** When webhooks may be claimed again after a fault, on the monotonic clock. */
  readonly #restUntilMs = new Map<string, number>();
  readonly #claims = semaphore(MAX_CLAIMS);

  constructor(deps: OwnershipDeps) {
    this.#deps = deps;
    deps.members.remember((instanceId) => [...this.#owners.values()].includes(instanceId));
  }

  /** Whether the deliveries of a webhook cannot be read. */
  isCorrupt(webhookId: string): boolean {
    return this.#corrupt.has(webhookId);
  }

  /** Whether this instance should claim a webhook that it does not deliver. */
  mayClaim(webhookId: string): boolean {
    if (this.#claiming.has(webhookId) || this.#corrupt.has(webhookId)) return false;
    const restsUntilMs = this.#restUntilMs.get(webhookId) ?? 0;
    return this.#isFree(this.#owners.get(webhookId)) && this.#deps.system.monotonicMs() >= restsUntilMs;
  }

  /** Does not claim a webhook for REST_MS. */
  rest(webhookId: string): void {
    this.#restUntilMs.set(webhookId, this.#deps.system.monotonicMs() + REST_MS);
  }

  /**
   * Claims a webhook; first waits if it is the turn of another instance, which may have just stopped. Resolves with null if it
   * did not claim the webhook; a later check then tries again.
   */
  async claim(webhook: Webhook, signal: AbortSignal): Promise<Claimed | null> {
    const { instanceId, reports } = this.#deps;
    const { id } = webhook;
    this.#claiming.add(id);
    try {
      await this.#turn(id, signal);
      const claimed = await this.#claims.run(() => this.#claimNow(webhook, signal));
      reports.succeeded('claim', webhook);
      if (claimed === null) return null;
      this.#owners.set(id, 'owner' in claimed ? claimed.owner : instanceId);
      return 'owner' in claimed ? null : claimed;
    } catch (error) {
      if (error instanceof WebhookCorrupt) this.#corrupt.add(id);
      if (!signal.aborted) reports.failed('claim', error, webhook);
      return null;
    } finally {
      this.#claiming.delete(id);
    }
  }

  async #turn(webhookId: string, signal: AbortSignal): Promise<void> {
    const { members, instanceId, system } = this.#deps;
    // The others wait for an owner that lives, so it claims its own again at once.
    if (this.#owners.get(webhookId) === instanceId || members.isInTurn(webhookId)) return;
    const { from, to } = OUT_OF_TURN_MS;
    await wait(system, from + system.random() * (to - from), signal);
  }

  async #claimNow(webhook: Webhook, signal: AbortSignal): Promise<Claimed | { readonly owner: string } | null> {
    if (signal.aborted || !this.#isFree(this.#owners.get(webhook.id))) return null;
    return await claimDeliveries(webhook, { deps: this.#deps, isFree: (owner) => this.#isFree(owner), signal });
  }

  /** Follows the claims of all instances, in the order of the log. Returns whether the event releases the webhook. */
  onRecorded(webhookId: string, recorded: RecordedEvent): boolean {
    const change = ownerChangeIn(recorded);
    if (change === null) return false;
    if (change.owner === null) this.#owners.delete(webhookId);
    else this.#owners.set(webhookId, change.owner);
    return change.owner === null;
  }

  /** Forgets webhooks that are deleted. */
  forget(isKnown: (webhookId: string) => boolean): void {
    for (const known of [this.#owners, this.#corrupt, this.#restUntilMs])
      for (const webhookId of known.keys()) if (!isKnown(webhookId)) known.delete(webhookId);
  }

  #isFree(owner: string | undefined): boolean {
    const { members, instanceId } = this.#deps;
    return owner === undefined || owner === instanceId || members.isSuspect(owner);
  }
}

/** The owner after an event of a stream of deliveries, or null if it changes none or cannot be read. */
function ownerChangeIn(recorded: RecordedEvent): { readonly owner: string | null } | null {
  if (recorded.type === 'DeliveriesReleased') return { owner: null };
  if (recorded.type !== 'DeliveriesClaimed') return null;
  try {
    const { type, data } = deliveryEventOf(recorded);
    return type === 'DeliveriesClaimed' ? { owner: data.owner } : null;
  } catch {
    return null;
  }
}
