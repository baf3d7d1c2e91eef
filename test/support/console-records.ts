/** Records of runs for tests of the console. */
import type { RunEvent } from '../../src/client/run-events.js';
import { runEventIn } from '../../src/client/run-events.js';
import { RunRecord } from '../../src/console/record/run-record.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { SCHEMA_VERSION } from '../../src/eventsourcing/hash-chain.js';
import { runStream } from '../../src/run/events.js';
import { goldenHistories } from './golden-histories.js';
import { RUN_ID, broke, given, graphOf, scored, wrote } from './given.js';
import { readGolden } from './golden.js';

export function recordOf(events: readonly RunEvent[]): RunRecord {
  const record = new RunRecord();
  for (const event of events) record.add(event);
  return record;
}

/** The recorded histories in test/golden/. */
export function goldenRecords(): ReadonlyMap<string, readonly RunEvent[]> {
  return new Map(readGolden().map(({ name, lines }) => [name, lines.map(runEventIn)]));
}

/** A history by its name, computed by the current code. */
export function history(name: string): readonly RunEvent[] {
  const events = goldenHistories().get(name);
  if (events === undefined) throw new Error(`There is no history "${name}"`);
  return events;
}

/** A run cut after this many events: rounds of rework, each with a failed attempt. */
export function longHistory(length: number): readonly RunEvent[] {
  const graph = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');
  let story = given(graph, { limits: { maxIterations: length, maxNodeExecutions: length } });
  while (story.events.length < length) {
    story = story.whenAll(broke('write', 5), wrote('write', `Draft ${'x'.repeat(500)}`), scored('judge', 3));
  }
  return story.events.slice(0, length);
}

/** A completed run of exactly this many events, some seconds apart, with the id of the stories. */
export function longRun(length: number): readonly RunEvent[] {
  const graph = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');
  const limits = { maxIterations: length, maxNodeExecutions: length };
  let ms = Date.parse('2026-01-01T00:00:00.000Z');
  const later = (): string => new Date((ms += 2_000)).toISOString();
  let story = given(graph, { limits, topic: 'The long way' });
  const rounds = Math.floor((length - story.events.length - LAST_EVENTS) / ROUND_EVENTS);
  for (let round = 1; round <= rounds; round += 1) {
    story = story
      .when(wrote('write', `# Draft ${round}\n\nThe **sea** is ${round} miles wide.`), 'one', later())
      .when(scored('judge', 3 + (round % 5), `Feedback ${round}`), 'one', later());
  }
  while (story.events.length < length - LAST_EVENTS) story = story.when(broke('write', 0), 'one', later());
  return story
    .when(wrote('write', 'The last draft'), 'one', later())
    .when(scored('judge', 9), 'one', later())
    .when(wrote('polish', 'The sea, polished'), 'one', later()).events;
}

/** Events of a round of rework: two results and two starts of nodes. */
const ROUND_EVENTS = 4;
/** Events from the last draft on: three results, two starts, and the end. */
const LAST_EVENTS = 6;

/** Events of an append. */
const AT_ONCE = 500;

/** Appends a record to a log as the service does. */
export async function appendRecord(log: Pick<EventLog, 'append'>, events: readonly RunEvent[]): Promise<void> {
  const stored = events.map(({ id, type, data, at, hash }) => ({
    id,
    type,
    data: canonical(data),
    metadata: { occurredAt: at, hash, schemaVersion: String(SCHEMA_VERSION) },
  }));
  for (let from = 0; from < stored.length; from += AT_ONCE) {
    await log.append(runStream(RUN_ID), stored.slice(from, from + AT_ONCE), from === 0 ? 'none' : from - 1);
  }
}
