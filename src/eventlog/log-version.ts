/** The version of the service's events that a log needs, so that an older service does not take newer records for corrupt. */

/**
 * The newest version of events that this service reads. A log carries it from the first start of this service on (the
 * embedded log as `user_version` of its file, EventStoreDB in the stream that names the log), and a service with a lower
 * number refuses to open the log. Raise it with every new event type, and with every change of a recorded schema whose
 * events the previous version would call corrupt, such as a new field; test/eventlog/log-version.test.ts compares the
 * schemas. It is not `SCHEMA_VERSION` of eventsourcing/hash-chain.ts, which tells the fold how to read old events.
 */
export const LOG_VERSION = 5;

/** Why this service does not open a log of a version, or null if it does. */
export function refusalOf(version: number): string | null {
  if (version <= LOG_VERSION) return null;
  return `it needs a newer version of this service (its events have version ${version}, this one reads up to ${LOG_VERSION})`;
}
