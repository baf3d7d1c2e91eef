/**
 * The list of all webhooks of a log, so that a start need not search the log for their streams. The list only names them:
 * the stream of each says whether it is registered or deleted.
 */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { BROKEN_LINK, GENESIS_HASH, isLinked } from '../eventsourcing/hash-chain.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { headAt } from '../eventsourcing/aggregate.js';
import type { System } from '../system/system.js';
import { WebhookCorrupt } from './errors.js';
import { WEBHOOK_LIST_STREAM, corruption, webhookListEventOf } from './events.js';

export interface WebhookListDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly system: Pick<System, 'sha256'>;
  /** Called for each corrupt record. */
  readonly onFault: (error: unknown) => void;
}

export class WebhookList {
  readonly #deps: WebhookListDeps;
  /** The last known event, or null if there is none. */
  head: StreamHead | null = null;

  constructor(deps: WebhookListDeps) {
    this.#deps = deps;
  }

  /** Revision of the last known event, or -1 if there is none. */
  get seq(): number {
    return this.head?.seq ?? -1;
  }

  /**
   * Reads what is new. A corrupt record hides only the webhook that it names.
   *
   * @param onListed receives the webhooks that are named; if it rejects, the next call reads the same events again
   * @throws {WebhookCorrupt} a page of the log is corrupt, after the webhooks before it were received
   */
  async readOn(onListed: (webhookIds: readonly string[]) => Promise<void>): Promise<void> {
    const { log } = this.#deps;
    const listed = new Set<string>();
    let head = this.head;
    let unread: WebhookCorrupt | null = null;
    try {
      for await (const recorded of log.readStream(WEBHOOK_LIST_STREAM, { from: this.seq + 1 })) {
        this.#fold(recorded, head, listed);
        head = headAt(recorded);
      }
    } catch (error) {
      if (!(error instanceof WebhookCorrupt)) throw error;
      unread = error;
    }
    await onListed([...listed]);
    this.head = head;
    if (unread !== null) throw unread;
  }

  #fold(recorded: RecordedEvent, before: StreamHead | null, listed: Set<string>): void {
    try {
      const { type, data } = webhookListEventOf(recorded);
      const follows = isLinked(before?.hash ?? GENESIS_HASH, recorded, this.#deps.system.sha256);
      // A record whose hash is wrong removes no webhook, and a webhook that it adds has a verified stream of its own.
      if (type === 'WebhookListed') listed.add(data.webhookId);
      else if (follows) listed.delete(data.webhookId);
      if (!follows) throw corruption(WEBHOOK_LIST_STREAM, recorded.revision, new Error(BROKEN_LINK));
    } catch (error) {
      if (!(error instanceof WebhookCorrupt)) throw error;
      this.#deps.onFault(error);
    }
  }
}
