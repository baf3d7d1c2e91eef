/** Records of runs for tests of what the console makes of them. */
import type { RunEvent } from '../../src/client/run-events.js';
import { runEventIn } from '../../src/client/run-events.js';
import { RunRecord } from '../../src/console/record/run-record.js';
import { goldenHistories } from './golden-histories.js';
import { broke, given, graphOf, scored, wrote } from './given.js';
import { readGolden } from './golden.js';

export function recordOf(events: readonly RunEvent[]): RunRecord {
  const record = new RunRecord();
  for (const event of events) record.add(event);
  return record;
}

/** The histories in test/golden/, as they were once exported. */
export function goldenRecords(): ReadonlyMap<string, readonly RunEvent[]> {
  return new Map(readGolden().map(({ name, lines }) => [name, lines.map(runEventIn)]));
}

/** A history that is made anew each time, by its name. */
export function history(name: string): readonly RunEvent[] {
  const events = goldenHistories().get(name);
  if (events === undefined) throw new Error(`There is no history "${name}"`);
  return events;
}

/** A run of at least so many events, cut there: rounds of rework with a failed attempt each. */
export function longHistory(length: number): readonly RunEvent[] {
  const graph = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');
  let story = given(graph, { limits: { maxIterations: length, maxNodeExecutions: length } });
  while (story.events.length < length) {
    story = story.whenAll(broke('write', 5), wrote('write', `Draft ${'x'.repeat(500)}`), scored('judge', 3));
  }
  return story.events.slice(0, length);
}
