/** The name of a log: a text of chance in a stream of its own, written by whoever comes first. */
import { RevisionConflict } from '../../errors.js';
import type { Appender } from './appender.js';
import type { Reader } from './reads.js';
import { identityIn } from './reads.js';
import { untilVisible } from './visible.js';

/** Reads the name, or gives one. `newId` makes version-4 UUIDs. */
export async function identityOf(reader: Reader, appender: Appender, newId: () => string): Promise<string> {
  const found = await identityIn(reader);
  if (found !== null) return found;
  const identity = newId();
  const event = { id: newId(), type: 'LogNamed', data: JSON.stringify({ identity }), metadata: {} };
  const stream = reader.names.identityStream;
  try {
    await appender.append({ stream, events: [event], expected: 'none', metadata: ['{}'] }, stream);
    return identity;
  } catch (error) {
    if (!(error instanceof RevisionConflict)) throw error;
    return await untilVisible(() => identityIn(reader), reader);
  }
}
