/** The bodies of deliveries, built from the log. */
import type { EventLog } from '../eventlog/port.js';
import { shownParent } from '../api/serializers/parent-run.js';
import type { ParentRun, RunRequestedData, WebhookMessage } from '../generated/schemas.js';
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
/** Runs whose first event is remembered. */
const MAX_REQUESTS = 10_000;

/** What the first event of a run says of it. */
type Origin = Pick<RunRequestedData, 'blueprintId'> & { readonly parentRun: ParentRun | null };

export interface MessageDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly corruptRuns: { has(runId: string): boolean };
}

export class Messages {
  readonly #deps: MessageDeps;
  readonly #kept = new BoundedMap<string, string>(MAX_KEPT);
  readonly #requests = new BoundedMap<string, Origin>(MAX_REQUESTS);

  constructor(deps: MessageDeps) {
    this.#deps = deps;
  }

  /** Forgets the texts of an erased run, and so does not deliver them. */
  forget(runId: string): void {
    for (const key of this.#kept.keys()) if (key.startsWith(runId)) this.#kept.delete(key);
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
    return (await this.#originOf(runId)).blueprintId;
  }

  async #originOf(runId: string): Promise<Origin> {
    const known = this.#requests.get(runId);
    if (known !== undefined) return known;
    const first = await this.#eventAt({ runId, seq: 0 });
    if (first.type !== 'RunRequested')
      throw new RunCorrupt({ runId, seq: 0, reason: 'a run begins with RunRequested' });
    const { blueprintId, parentRun = null } = first.data;
    this.#requests.set(runId, { blueprintId, parentRun });
    return { blueprintId, parentRun };
  }

  async #messageOf({ runId, seq }: RunEventRef): Promise<WebhookMessage> {
    if (this.#deps.corruptRuns.has(runId)) throw new RunCorrupt({ runId, seq, reason: 'its record is damaged' });
    const { id, type, at, hash, data } = await this.#eventAt({ runId, seq });
    const { blueprintId, parentRun } = await this.#originOf(runId);
    const run = { run_id: runId, blueprint_id: blueprintId, ...shownParent(parentRun), seq };
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
