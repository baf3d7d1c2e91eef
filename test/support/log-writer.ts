/**
 * A process that appends to a log as fast as it can: `node log-writer.js FILE WRITERS`. With 0 writers it only keeps
 * the log open. Prints `open`, then a line `STREAM REVISION ID` for each acknowledged event. When the log fails, prints
 * `failed CODE` for the append in flight, for one more append and for a ping.
 */
import { randomUUID } from 'node:crypto';
import { argv, stdout } from 'node:process';
import { CouncilError } from '../../src/errors.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';

const [, , file = '', writers = '1'] = argv;
await main(file, Number(writers));

async function main(file: string, writers: number): Promise<void> {
  const log = await openEmbeddedLog({ file });
  say('open');
  if (writers === 0) return;
  await Promise.all(Array.from({ length: writers }, () => appendUntilFailure(log)));
  await log.close();
}

async function appendUntilFailure(log: EventLog): Promise<void> {
  const stream = `run-${randomUUID()}`;
  for (let revision = 0; ; revision += 2) {
    const events = [newEvent(revision), newEvent(revision + 1)];
    try {
      await log.append(stream, events, revision === 0 ? 'none' : revision - 1);
    } catch (error) {
      say(`failed ${codeOf(error)}`);
      break;
    }
    events.forEach(({ id }, index) => say(`${stream} ${revision + index} ${id}`));
  }
  await log.append(stream, [newEvent(0)], 'none').catch((error: unknown) => say(`failed ${codeOf(error)}`));
  await log.ping().catch((error: unknown) => say(`failed ${codeOf(error)}`));
}

function newEvent(n: number): NewEvent {
  return { id: randomUUID(), type: 'Counted', data: JSON.stringify({ n, text: 'x'.repeat(250) }), metadata: {} };
}

function codeOf(error: unknown): string {
  return error instanceof CouncilError ? error.code : String(error);
}

/** Writes to pipes are synchronous on the systems of these tests, so a printed line survives the process. */
function say(line: string): void {
  stdout.write(`${line}\n`);
}
