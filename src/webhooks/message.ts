/** The bodies of deliveries, built from the log. */
import type { EventLog } from '../eventlog/port.js';
import type { WebhookMessage } from '../generated/schemas.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { runStream } from '../run/events.js';
import { statusAfter } from '../run/state.js';
import { runEventOf } from '../run/stream.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { RunEventRef } from './deliveries.js';

/** Most bodies that are kept for the other webhooks of the same event, and the length of the longest kept one. */
const MAX_KEPT = 64;
const MAX_KEPT_CHARS = 64 * 1024;
/** Runs whose blueprint is remembered. */
const MAX_BLUEPRINTS = 10_000;

export interface MessageDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly corruptRuns: { has(runId: string): boolean };
}

export class Messages {
  readonly #deps: MessageDeps;
  readonly #kept = new BoundedMap<string, string>(MAX_KEPT);
  readonly #blueprints = new BoundedMap<string, string | null>(MAX_BLUEPRINTS);

  constructor(deps: MessageDeps) {
    this.#deps = deps;
  }

  /** The body of a delivery. @throws {RunCorrupt | LogUnavailable} */
  async bodyOf({ runId, seq }: RunEventRef): Promise<string> {
    const key = `${runId}:${seq}`;
    const body = this.#kept.get(key) ?? JSON.stringify(await this.#messageOf({ runId, seq }));
    if (body.length <= MAX_KEPT_CHARS) this.#kept.set(key, body);
    return body;
  }

  /** The blueprint of a run, or null if it has none. @throws {RunCorrupt | LogUnavailable} */
  async blueprintOf(runId: string): Promise<string | null> {
    const known = this.#blueprints.get(runId);
    if (known !== undefined) return known;
    const first = await this.#eventAt({ runId, seq: 0 });
    if (first.type !== 'RunRequested')
      throw new RunCorrupt({ runId, seq: 0, reason: 'a run begins with RunRequested' });
    this.#blueprints.set(runId, first.data.blueprintId);
    return first.data.blueprintId;
  }

  async #messageOf({ runId, seq }: RunEventRef): Promise<WebhookMessage> {
    if (this.#deps.corruptRuns.has(runId)) throw new RunCorrupt({ runId, seq, reason: 'its record is damaged' });
    const { id, type, at, hash, data } = await this.#eventAt({ runId, seq });
    const run = { run_id: runId, blueprint_id: await this.blueprintOf(runId), seq };
    const status = await this.#statusAfter({ runId, seq });
    return { type, timestamp: at, data: { ...run, status, id, at, hash, event: { ...data } } };
  }

  /** The status of a run after an event: that of the last event which changed it. */
  async #statusAfter({ runId, seq: from }: RunEventRef): Promise<WebhookMessage['data']['status']> {
    for await (const recorded of this.#deps.log.readStream(runStream(runId), { from, direction: 'backwards' })) {
      const status = statusAfter(recorded.type);
      if (status !== null) return status;
    }
    throw new RunCorrupt({ runId, seq: 0, reason: 'a run begins with RunRequested' });
  }

  async #eventAt({ runId, seq }: RunEventRef): Promise<RunEvent> {
    for await (const recorded of this.#deps.log.readStream(runStream(runId), { from: seq, max: 1 }))
      if (recorded.revision === seq) return runEventOf(recorded);
    throw new RunCorrupt({ runId, seq, reason: 'the event is missing' });
  }
}
