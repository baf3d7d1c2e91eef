/** The heartbeats of this instance: appended to its own stream at intervals, each at the exact revision. */
import type { System } from '../system/system.js';
import { LogClosed } from '../eventlog/errors.js';
import type { StreamHead } from '../eventsourcing/handle-command.js';
import { appendFacts } from '../eventsourcing/handle-command.js';
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
  #head: StreamHead | null = null;
  #acknowledgedMs: number;
  #beating: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
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
    const { instanceId } = this.#options;
    const beat = { type: INSTANCE_BEAT, data: {} };
    const after = { stream: instanceStream(instanceId), subject: instanceId, head: this.#head, facts: [beat] };
    const { recorded } = await appendFacts(this.#options, after, this.#stopping.signal);
    this.#head = recorded.at(-1) ?? this.#head;
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
