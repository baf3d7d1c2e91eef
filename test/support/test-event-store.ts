/**
 * Chooses the log for tests of the service: the embedded log, or with COUNCIL_TEST_LOG=eventstoredb the server that
 * COUNCIL_TEST_EVENTSTORE names (event-store-for-tests.ts sets it). Each folder has its own streams there, in every
 * process that opens it.
 */
import { nodeSystem } from '../../src/system/system.js';
import type { EventStoreSettings } from '../../src/config.js';

/** Skips tests that need the file of the embedded log if the tests run on a server. */
export function onEmbeddedLog(describeTests: () => void): void {
  if (process.env['COUNCIL_TEST_LOG'] !== 'eventstoredb') describeTests();
}

/** Settings of the log that belongs to a folder. */
export function eventStoreFor(path: string): EventStoreSettings | null {
  const url = process.env['COUNCIL_TEST_EVENTSTORE'] ?? '';
  return url === '' ? null : { url, prefix: `t${nodeSystem().sha256(path).slice(0, 24)}` };
}

/** The same as environment variables, for a process of the service. */
export function eventStoreEnvironment(path: string): Readonly<Record<string, string>> {
  const settings = eventStoreFor(path);
  return settings === null ? {} : { EVENTSTORE_URL: settings.url, EVENTSTORE_PREFIX: settings.prefix };
}
