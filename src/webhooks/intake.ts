/**
 * Gives the outboxes the events of runs: from the subscription as they are recorded, and from the log to outboxes that are
 * behind. An outbox is behind if its webhook was claimed just now, or if it had no room. One page at a time serves all of them.
 */
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { isUnreadable } from '../run/errors.js';
import { runIdOf } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { wait } from '../system/async/deadline.js';
import { TaskTracker } from '../system/async/tasks.js';
import type { System } from '../system/system.js';
import type { Messages } from './message.js';
import type { Outbox } from './outbox.js';
import type { Reports } from './reports.js';
import { delivers } from './state.js';
import type { WebhookStore } from './store.js';

/** Events of a page. */
const PAGE_EVENTS = 1_000;
/** Wait after the log could not be read, in milliseconds. */
const RETRY_MS = 1_000;

export interface IntakeDeps {
  readonly log: Pick<EventLog, 'readAll'>;
  readonly system: Pick<System, 'after'>;
  readonly messages: Pick<Messages, 'blueprintOf'>;
  readonly store: Pick<WebhookStore, 'known'>;
  readonly corruptRuns: { has(runId: string): boolean };
  /** The outboxes of this instance. */
  readonly outboxes: () => Iterable<Outbox>;
  readonly reports: Pick<Reports, 'failed' | 'succeeded'>;
}

export class Intake {
  readonly #deps: IntakeDeps;
  readonly #tasks = new TaskTracker();
  #isReading = false;
  /** Position of the last event from the subscription, or null before the first. */
  #live: Position | null = null;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  onRunFolded({ id, type, position, stream, revision: seq }: RecordedEvent, run: RunState): void {
    const runId = runIdOf(stream);
    if (runId === null || (this.#live !== null && position <= this.#live)) return;
    this.#live = position;
    const { blueprintId } = run.request;
    for (const outbox of this.#deps.outboxes()) {
      if (!outbox.isLive || position <= outbox.backlog.place) continue;
      const isWanted = delivers(this.#deps.store.known(outbox.webhookId), type, blueprintId);
      if (!isWanted || outbox.backlog.hasRoom) outbox.consider({ id, type, position, runId, seq }, isWanted);
      else outbox.isLive = false;
    }
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
    const { system, reports } = this.#deps;
    for (let behind = this.#behind(); behind.length > 0 && !this.#tasks.isEnding; behind = this.#behind()) {
      try {
        await this.#readPage(behind);
        reports.succeeded('intake');
      } catch (error) {
        reports.failed('intake', error);
        await wait(system, RETRY_MS, this.#tasks.signal);
      }
    }
    this.#isReading = false;
  }

  #behind(): readonly Outbox[] {
    return [...this.#deps.outboxes()].filter((each) => !each.isLive && each.backlog.isHalfEmpty);
  }

  async #readPage(behind: readonly Outbox[]): Promise<void> {
    const { log } = this.#deps;
    const before = this.#live;
    const from = behind.map(({ backlog }) => backlog.place).reduce((one, other) => (one < other ? one : other));
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
      if (before !== null) outbox.backlog.passTo(before);
      outbox.isLive = (this.#live ?? outbox.backlog.place) <= outbox.backlog.place;
    }
  }

  /** Offers an event to the outboxes that read. An outbox that wants the event and has no room stops reading. */
  async #offer(event: RecordedEvent, reading: Set<Outbox>): Promise<void> {
    const { id, type, position, stream, revision: seq } = event;
    const runId = runIdOf(stream);
    for (const outbox of reading) {
      if (runId === null || position <= outbox.backlog.place) continue;
      const isWanted = await this.#isWanted(outbox.webhookId, { runId, type });
      if (isWanted && !outbox.backlog.hasRoom) reading.delete(outbox);
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
      if (!isUnreadable(error)) throw error;
      return false;
    }
  }
}
