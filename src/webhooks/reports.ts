/** The log lines about webhooks for operators. A line names its webhook by id and host; the rest of its address may be secret. */
import { ServiceStopping } from '../errors.js';
import {
  AppendOutcomeUnknown,
  LogClosed,
  LogCorrupt,
  LogFull,
  LogUnavailable,
  RevisionConflict,
} from '../eventlog/errors.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { Logger } from '../system/logger.js';
import type { Delivery } from './deliveries.js';
import { WebhookCorrupt, WebhookUnknown } from './errors.js';
import { WEBHOOK_LIST_STREAM, deliveringWebhookOf, webhookIdOf } from './events.js';
import type { Webhook } from './state.js';

/** Another instance was first, the webhook is deleted, the service stops, or the log has lines of its own for it. */
const EXPECTED = [
  ...[RevisionConflict, WebhookUnknown, ServiceStopping],
  ...[AppendOutcomeUnknown, LogUnavailable, LogClosed, LogFull, LogCorrupt],
];

/** Whether an error needs no log line here, and the task can be repeated at once. */
export function isExpected(error: unknown): boolean {
  return EXPECTED.some((expected) => error instanceof expected);
}

/** Most failing tasks that are remembered; beyond that, failures are reported again. */
const MAX_FAILING = 2_000;

/** What an instance does for its webhooks, and tries again after a failure. */
const TASKS = {
  claim: 'webhook: failed to begin its deliveries; trying again every second',
  deliver: 'webhook: its deliveries stopped by a fault; beginning them again in a minute',
  intake: 'webhooks: failed to read the events of runs; trying again every second',
  disable:
    'webhook: failed to record that its receiver answered 410; this instance delivers nothing to it until a restart',
  read: 'webhooks: failed to read a change of another instance; reading it again with the next change',
} as const;

export class Reports {
  readonly #logger: Logger;
  /** Tasks whose last try has failed and that are tried again every second, so that each failure is reported once. */
  readonly #failing = new BoundedMap<string, true>(MAX_FAILING);

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Reports a corrupt record, or the failure of a task that no caller waits for. */
  failed(task: keyof typeof TASKS, err: unknown, webhook: Webhook | null = null): void {
    if (err instanceof WebhookCorrupt) return this.#corrupt(err);
    const key = keyOf(task, webhook);
    if (isExpected(err) || this.#failing.get(key) === true) return;
    if (task === 'claim' || task === 'intake') this.#failing.set(key, true);
    this.#logger.error({ ...(webhook !== null && nameOf(webhook)), err }, TASKS[task]);
  }

  /** The next failure of the task is reported again. */
  succeeded(task: 'claim' | 'intake', webhook: Webhook | null = null): void {
    this.#failing.delete(keyOf(task, webhook));
  }

  /** The receiver has answered 410. */
  gone(webhook: Webhook): void {
    const line = 'webhook: disabled, because its receiver answered 410; to use it again, register its address again';
    this.#logger.error(nameOf(webhook), line);
  }

  /** A delivery has failed for 3 days, and the service attempts it no more. */
  abandoned(webhook: Webhook, { id: deliveryId, runId, attempts, error: reason }: Delivery): void {
    const line = 'webhook: gave up a delivery; when its receiver works again, retry the delivery';
    this.#logger.error({ ...nameOf(webhook), deliveryId, runId, attempts, reason }, line);
  }

  #corrupt(err: WebhookCorrupt): void {
    const { stream, seq } = err.data;
    const webhookId = webhookIdOf(stream) ?? deliveringWebhookOf(stream);
    this.#logger.error({ ...(webhookId !== null && { webhookId }), stream, seq, err }, corruptLine(stream));
  }
}

function corruptLine(stream: string): string {
  if (stream === WEBHOOK_LIST_STREAM)
    return 'webhooks: a record of their list is corrupt; if a webhook is missing, register its address again';
  return deliveringWebhookOf(stream) === null
    ? 'webhook: its record is corrupt, so its later changes are ignored; if it is missing, register its address again'
    : 'webhook: the record of its deliveries is corrupt, so the service delivers nothing to it; register its address again';
}

function keyOf(task: keyof typeof TASKS, webhook: Webhook | null): string {
  return `${task} ${webhook?.id ?? ''}`;
}

function nameOf({ id, url }: Webhook): { readonly webhookId: string; readonly host: string } {
  return { webhookId: id, host: new URL(url).host };
}
