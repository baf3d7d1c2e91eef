/** A real log, and the record of one run that a test can append in pieces. */
import type { RunReader } from '../../src/run/runs/reader.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext, readRun } from '../../src/run/stream.js';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { openLog } from '../../src/eventlog/open.js';
import type { Appended, EventLog, NewEvent } from '../../src/eventlog/port.js';
import { runStream } from '../../src/run/events.js';
import { instantModel } from './instant-model.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { allFinished } from './run-when.js';
import { tempDir } from './temp-dir.js';
import { eventStoreFor } from './test-event-store.js';

/** The record of a completed run of the fixed graph: 18 events. */
export async function recordedStory(): Promise<readonly NewEvent[]> {
  const dir = tempDir();
  const engine = await openTestEngine({ path: dir.path, model: instantModel() });
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId));
  await allFinished(engine, [runId]);
  const events: NewEvent[] = [];
  for await (const { id, type, data, metadata } of engine.log.readStream(runStream(runId)))
    events.push({ id, type, data, metadata });
  await engine.stop();
  dir.remove();
  return events;
}

/** Opens the log of a folder. */
export function openStoryLog(path: string): Promise<EventLog> {
  return openLog({
    eventStore: eventStoreFor(path),
    file: join(path, 'log.sqlite'),
    onBroken: () => undefined,
    system: nodeSystem(),
  });
}

/** Appends a part of a story to a run, with new event ids. */
export function appendStory(
  log: EventLog,
  runId: string,
  story: readonly NewEvent[],
  from: number,
  to: number,
): Promise<Appended> {
  const recordedId = story[0]?.metadata['$correlationId'] ?? '';
  const events = story
    .slice(from, to)
    .map((event) => ({ ...event, id: nodeSystem().uuid(), data: event.data.replaceAll(recordedId, runId) }));
  return log.append(runStream(runId), events, from === 0 ? 'none' : from - 1);
}

/** Folds runs without checking hashes, because a repeated story keeps the hashes of the first. */
export function storyReader(log: EventLog): Pick<RunReader, 'fold' | 'events'> {
  return {
    async fold(runId) {
      let run: RunState | null = null;
      for await (const event of readRun(log, runId)) run = foldNext(runId, run, event);
      return run;
    },
    events: (runId, range) => readRun(log, runId, { from: range?.from ?? 0 }),
  };
}
