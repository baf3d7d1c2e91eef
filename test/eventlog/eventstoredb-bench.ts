/** Shared by the tests of the EventStoreDB adapter: fake servers and logs, which are closed after each test. */
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { appendWithRetry } from '../../src/eventlog/port.js';
import type { EventStoreOptions } from '../../src/eventlog/eventstoredb/log.js';
import { DEADLINE_MS, openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import { RETRY_MS } from '../../src/eventlog/eventstoredb/reads.js';
import type { Appended, EventLog, ExpectedRevision, NewEvent } from '../../src/eventlog/port.js';
import type { FakeEventStore } from '../support/fake-event-store.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

/** Deadline of calls in tests that wait for it, in milliseconds. */
export const SHORT_MS = 300;
/** Much longer than a call that ends by itself takes on a busy machine, in milliseconds. */
export const MOST_MS = 20_000;

export interface EventStoreBench {
  server(): Promise<FakeEventStore>;
  /** A log on a server or under a connection string; the default deadline is the adapter's. */
  log(at: FakeEventStore | string, options?: Partial<EventStoreOptions>): EventLog;
  /** Path of a file of this test. */
  file(): string;
}

/** Opens the servers and logs of a test, and closes those still open after it. */
export function eventStoreBench(): EventStoreBench {
  let dir: TempDir | null = null;
  let files = 0;
  const logs: EventLog[] = [];
  const servers: FakeEventStore[] = [];

  beforeEach(() => {
    dir = tempDir();
  });
  afterEach(async () => {
    await Promise.all(logs.splice(0).map((log) => log.close()));
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    dir?.remove();
  });

  const file = (): string => join(dir?.path ?? '', `server-${(files += 1)}.sqlite`);
  return {
    file,
    async server() {
      const server = await fakeEventStore(file());
      servers.push(server);
      return server;
    },
    log(at, options = {}) {
      const url = typeof at === 'string' ? at : at.url;
      const log = openEventStoreLog({ url, system: nodeSystem(), ...options });
      logs.push(log);
      return log;
    },
  };
}

/** A clock on which the adapter's deadline passes when a test calls a function; all other timers run by themselves. */
export interface HeldDeadline {
  readonly system: EventStoreOptions['system'];
  pass(): void;
}

/** @param onRetry called each time before a failed call is tried again */
export function heldDeadline(onRetry: () => void = () => undefined): HeldDeadline {
  const system = nodeSystem();
  const held = new Set<() => void>();
  return {
    system: {
      ...system,
      after(delayMs, then) {
        if (delayMs === DEADLINE_MS) {
          held.add(then);
          return () => held.delete(then);
        }
        if (delayMs === RETRY_MS) onRetry();
        return system.after(delayMs, then);
      },
    },
    pass: () =>
      [...held].forEach((then) => {
        held.delete(then);
        then();
      }),
  };
}

/** Appends until the answer is certain, as the service does. */
export function surely(
  log: EventLog,
  stream: string,
  events: readonly NewEvent[],
  expected: ExpectedRevision,
): Promise<Appended> {
  const patience = { system: nodeSystem(), signal: new AbortController().signal };
  return appendWithRetry(log, { stream, events, expected }, patience);
}
