/** What a log alone does, without an engine: the floor under every other number. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';

/** JSON text of an object, 300 bytes long. */
const DATA = JSON.stringify({ text: 'x'.repeat(289) });
/** Appends to one stream before its writer goes on to a new one, about as many as a run makes. */
const APPENDS_PER_STREAM = 10;

export interface RawLoad {
  /** Writers at once, each appending to a stream of its own, one append after the other. */
  readonly streams: number;
  readonly seconds: number;
}

/** Durable appends of two 300-byte events a second, on a new embedded log in a folder. */
export async function rawAppendRate(dir: string, load: RawLoad): Promise<number> {
  return await appendRate(await openEmbeddedLog({ file: join(dir, `raw-${randomUUID()}.sqlite`) }), load);
}

/** Durable appends of two 300-byte events a second; closes the log. */
export async function appendRate(log: EventLog, { streams, seconds }: RawLoad): Promise<number> {
  const startedMs = performance.now();
  const untilMs = startedMs + seconds * 1_000;
  const counts = await Promise.all(Array.from({ length: streams }, () => appendUntil(log, untilMs)));
  const elapsedMs = performance.now() - startedMs;
  await log.close();
  return counts.reduce((sum, count) => sum + count, 0) / (elapsedMs / 1_000);
}

async function appendUntil(log: EventLog, untilMs: number): Promise<number> {
  let count = 0;
  while (performance.now() < untilMs) {
    const stream = `run-${randomUUID()}`;
    for (let i = 0; i < APPENDS_PER_STREAM; i += 1) {
      await log.append(stream, [newEvent(), newEvent()], i === 0 ? 'none' : i * 2 - 1);
    }
    count += APPENDS_PER_STREAM;
  }
  return count;
}

function newEvent(): NewEvent {
  return { id: randomUUID(), type: 'NodeCompleted', data: DATA, metadata: { schemaVersion: '1' } };
}
