/** A webhook, folded from its stream. */
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { headOf } from '../eventsourcing/aggregate.js';
import type { SealedEvent } from '../eventsourcing/hash-chain.js';
import { readVerified } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import type { WebhookFact } from './events.js';
import { corruption, webhookEventOf, webhookStream } from './events.js';

/** How long the secret before a rotation also signs, in milliseconds. */
const OLD_SECRET_MS = 24 * 3_600_000;

/** What a caller registers. */
export interface Registration {
  readonly url: string;
  readonly types: readonly string[];
  readonly blueprintId: string | null;
}

export interface Webhook {
  readonly id: string;
  readonly url: string;
  /** Types of the events that are delivered. */
  readonly types: ReadonlySet<string>;
  /** Only events of its runs are delivered, or of all runs if it is null. */
  readonly blueprintId: string | null;
  readonly secret: string;
  /** The secret before the last rotation, or null if there was none. `until` is ISO 8601. */
  readonly oldSecret: { readonly secret: string; readonly until: string } | null;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
  /** Only later events of the log are delivered. */
  readonly registeredAt: Position;
  /** Whether the receiver has answered 410. */
  readonly isDisabled: boolean;
  readonly isDeleted: boolean;
  readonly head: StreamHead;
}

/** An event of a webhook with its place in the log. */
type PlacedEvent = SealedEvent<WebhookFact> & { readonly position: Position };

/** A webhook after an event, or null before its registration. */
export function evolveWebhook(webhook: Webhook | null, event: PlacedEvent, id: string): Webhook | null {
  const head = headOf(event);
  if (event.type === 'WebhookRegistered') {
    const { url, types, blueprintId, secret } = event.data;
    return {
      id,
      url,
      types: new Set(types),
      blueprintId,
      secret,
      oldSecret: null,
      createdAt: event.at,
      registeredAt: event.position,
      isDisabled: false,
      isDeleted: false,
      head,
    };
  }
  return webhook && { ...webhook, ...changesBy(webhook, event), head };
}

type Change = Exclude<PlacedEvent, { type: 'WebhookRegistered' }>;

function changesBy({ secret }: Webhook, event: Change): Partial<Webhook> {
  switch (event.type) {
    case 'WebhookSecretRotated': {
      const until = new Date(Date.parse(event.at) + OLD_SECRET_MS).toISOString();
      return { secret: event.data.secret, oldSecret: { secret, until } };
    }
    case 'WebhookDisabled':
      return { isDisabled: true };
    case 'WebhookDeleted':
      return { isDeleted: true };
    default:
      return event satisfies never;
  }
}

/**
 * Folds the events of a webhook that follow a known state. Returns null if it has no events.
 *
 * @throws {WebhookCorrupt | LogUnavailable}
 */
export async function readWebhookOn(
  { log, system }: { readonly log: Pick<EventLog, 'readStream'>; readonly system: Pick<System, 'sha256'> },
  webhookId: string,
  before: Webhook | null,
): Promise<Webhook | null> {
  let webhook = before;
  const range = { sha256: system.sha256, from: (before?.head.seq ?? -1) + 1 };
  const stream = webhookStream(webhookId);
  const eventOf = (recorded: RecordedEvent) => ({ ...webhookEventOf(recorded), position: recorded.position });
  const corrupt = (seq: number, cause: unknown): Error => corruption(stream, seq, cause);
  for await (const event of readVerified(log, { stream, eventOf, corrupt }, range))
    webhook = evolveWebhook(webhook, event, webhookId);
  return webhook;
}

/** Whether a webhook delivers an event of a type of the runs of a blueprint. A deleted webhook delivers none. */
export function delivers(webhook: Webhook | null, type: string, blueprintId: string | null): boolean {
  if (webhook === null || !webhook.types.has(type)) return false;
  return webhook.blueprintId === null || webhook.blueprintId === blueprintId;
}

/** The secrets that sign at a time, the newest first. @param now ISO 8601 */
export function signingSecrets({ secret, oldSecret }: Webhook, now: string): readonly string[] {
  return oldSecret !== null && now < oldSecret.until ? [secret, oldSecret.secret] : [secret];
}
