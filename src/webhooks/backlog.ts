/**
 * Reads the log for the webhooks that are behind: those claimed just now, and those that had no room. One page at a time
 * serves all of them.
 */
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { RunCorrupt } from '../run/errors.js';
import { runIdOf } from '../run/events.js';
import { wait } from '../system/async/deadline.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import type { System } from '../system/system.js';
import type { Messages } from './message.js';
import type { Outbox } from './outbox.js';
import { delivers } from './state.js';
import type { WebhookStore } from './store.js';

/** Events of a page. */
const PAGE_EVENTS = 1_000;
/** Wait after the log could not be read, in milliseconds. */
const RETRY_MS = 1_000;

export interface BacklogDeps {
  readonly log: Pick<EventLog, 'readAll'>;
  readonly system: Pick<System, 'after'>;
  readonly messages: Pick<Messages, 'blueprintOf'>;
  readonly store: Pick<WebhookStore, 'known'>;
  readonly corruptRuns: { has(runId: string): boolean };
  /** The outboxes of this instance. */
  readonly outboxes: () => Iterable<Outbox>;
  /** Position of the last event that the subscription has delivered, or null before the first. */
  readonly live: () => Position | null;
  readonly onFault: (error: unknown) => void;
}

export class Backlog {
  readonly #deps: BacklogDeps;
  readonly #tasks = new TaskTracker();
  #isReading = false;

  constructor(deps: BacklogDeps) {
    this.#deps = deps;
  }

  /** Reads on, until every outbox is live or has no room. */
  wake(): void {
    if (this.#isReading || this.#tasks.isEnding) return;
    this.#isReading = true;
    void this.#tasks.track(this.#read());
  }

  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  async #read(): Promise<void> {
    const { system, onFault } = this.#deps;
    for (let behind = this.#behind(); behind.length > 0 && !this.#tasks.isEnding; behind = this.#behind()) {
      try {
        await this.#readPage(behind);
      } catch (error) {
        onFault(error);
        await wait(system, RETRY_MS, this.#tasks.signal);
      }
    }
    this.#isReading = false;
  }

  #behind(): readonly Outbox[] {
    return [...this.#deps.outboxes()].filter((each) => !each.isLive && each.isHalfEmpty);
  }

  async #readPage(behind: readonly Outbox[]): Promise<void> {
    const { log, live } = this.#deps;
    const before = live();
    const from = behind.map(({ place }) => place).reduce((one, other) => (one < other ? one : other));
    const reading = new Set(behind);
    let events = 0;
    for await (const event of log.readAll(from, { categories: ['run'], max: PAGE_EVENTS })) {
      events += 1;
      await this.#offer(event, reading);
      if (reading.size === 0 || this.#tasks.isEnding) return;
    }
    if (events === PAGE_EVENTS) return;
    // The page ends at the head. From here on the subscription delivers, unless it is ahead already.
    for (const outbox of reading) {
      if (before !== null) outbox.passTo(before);
      outbox.isLive = (live() ?? outbox.place) <= outbox.place;
    }
  }

  /** Offers an event to the outboxes that read. Those that want it and have no room leave. */
  async #offer(event: RecordedEvent, reading: Set<Outbox>): Promise<void> {
    const { id, type, position, stream, revision: seq } = event;
    const runId = runIdOf(stream);
    for (const outbox of reading) {
      if (runId === null || position <= outbox.place) continue;
      const isWanted = await this.#isWanted(outbox.webhookId, { runId, type });
      if (isWanted && !outbox.hasRoom) reading.delete(outbox);
      else outbox.consider({ id, type, position, runId, seq }, isWanted);
    }
  }

  async #isWanted(
    webhookId: string,
    { runId, type }: { readonly runId: string; readonly type: string },
  ): Promise<boolean> {
    const { store, messages, corruptRuns } = this.#deps;
    const webhook = store.known(webhookId);
    if (webhook === null || !webhook.types.has(type) || corruptRuns.has(runId)) return false;
    try {
      return delivers(webhook, type, webhook.blueprintId === null ? null : await messages.blueprintOf(runId));
    } catch (error) {
      if (!(error instanceof RunCorrupt)) throw error;
      return false;
    }
  }
}
