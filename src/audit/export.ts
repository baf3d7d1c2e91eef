/** A run as a file: one event per line in the canonical form of RFC 8785, as the events endpoint streams it. */
import { RunCorrupt } from '../run/errors.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import { fieldOf } from '../system/untrusted.js';

/** An event as a line of an export, without its line feed. */
export function exportLine({ at, data, hash, id, seq, type }: ExportedEvent): string {
  return canonical({ at, data, hash, id, seq, type });
}

/**
 * The events of an export, line by line.
 *
 * @throws {RunCorrupt} at a line that is not, byte for byte, the canonical form of an event
 */
export async function* readExport(runId: string, lines: AsyncIterable<string>): AsyncIterable<ExportedEvent> {
  let seq = 0;
  for await (const line of lines) {
    yield eventIn(line, { runId, seq });
    seq += 1;
  }
}

function eventIn(line: string, at: { readonly runId: string; readonly seq: number }): ExportedEvent {
  const value = parsed(line);
  if (!isEvent(value)) throw new RunCorrupt({ ...at, reason: 'its line holds no event' });
  if (canonicalOf(value) !== line) throw new RunCorrupt({ ...at, reason: 'its line is not in canonical form' });
  return value;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** The canonical form, or null if there is none, for example for an escaped lone surrogate. */
function canonicalOf(event: ExportedEvent): string | null {
  try {
    return exportLine(event);
  } catch {
    return null;
  }
}

/** Whether a value has the shape of an event of any type. */
function isEvent(value: unknown): value is ExportedEvent {
  const isText = ['at', 'hash', 'id', 'type'].every((name) => typeof fieldOf(value, name) === 'string');
  const data = fieldOf(value, 'data');
  return isText && typeof fieldOf(value, 'seq') === 'number' && typeof data === 'object' && data !== null;
}
