/** The heartbeats of this instance: appended to its own stream at intervals, each at the exact revision. */
import type { System } from '../system/system.js';
import { LogClosed } from '../errors.js';
import { appendWithRetry } from '../eventsourcing/append-with-retry.js';
import type { ChainHead } from '../eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../eventsourcing/hash-chain.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { wait } from '../system/async/wait.js';

export interface HeartbeatOptions {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown) => void;
}

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #stopping = new AbortController();
  #head: ChainHead = { seq: -1, hash: GENESIS_HASH };
  #causationId: string;
  #acknowledgedMs: number;
  #beating: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#causationId = options.instanceId;
    this.#acknowledgedMs = options.system.monotonicMs();
  }

  /** When the log last acknowledged a heartbeat, on the monotonic clock; before the first, when this was created. */
  get acknowledgedMs(): number {
    return this.#acknowledgedMs;
  }

  start(): void {
    this.#beating = this.#beat();
  }

  /** Resolves once no append is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#beating;
  }

  async #beat(): Promise<void> {
    const { system, heartbeatMs, onFault } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#append();
        this.#acknowledgedMs = system.monotonicMs();
      } catch (error) {
        if (error instanceof LogClosed) return;
        onFault(error);
      }
      await wait(system, heartbeatMs, signal);
    }
  }

  async #append(): Promise<void> {
    const { log, system, instanceId } = this.#options;
    const { events, exported, head } = sealEvents(this.#head, [{ type: INSTANCE_BEAT, data: {} }], {
      at: system.now(),
      nextId: system.uuid,
      sha256: system.sha256,
      instanceId,
      correlationId: instanceId,
      causationId: this.#causationId,
    });
    const expected = this.#head.seq < 0 ? ('none' as const) : this.#head.seq;
    const append = { stream: instanceStream(instanceId), events, expected };
    await appendWithRetry(log, append, { system, signal: this.#stopping.signal });
    this.#head = head;
    for (const { id } of exported) this.#causationId = id;
  }
}

const INSTANCE_BEAT = 'InstanceBeat';

/** Stream of an instance: its heartbeats, of which the log keeps the last. */
function instanceStream(instanceId: string): string {
  return `instance-${instanceId}`;
}

/** The instance whose heartbeat an event is; null when it is none. */
export function beatOf({ stream, type }: RecordedEvent): string | null {
  const prefix = instanceStream('');
  return type === INSTANCE_BEAT && stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}
