/**
 * The name of a log: a text of chance in a stream of its own, written by whoever comes first, and before anything else:
 * the log begins there, however much a server holds for others.
 */
import { AppendOutcomeUnknown, LogUnavailable, RevisionConflict } from '../../errors.js';
import type { Appender } from './appender.js';
import type { LogName, Reader } from './reads.js';
import { nameIn } from './reads.js';
import { untilVisible } from './visible.js';

/** Reads the name, or gives one, when first asked for it. `newId` makes version-4 UUIDs. */
export class Naming {
  readonly #name: () => Promise<LogName>;
  #known: Promise<LogName> | null = null;

  constructor(reader: Omit<Reader, 'naming'>, appender: Appender, newId: () => string) {
    this.#name = () => nameOf(reader, appender, newId);
  }

  /** @throws {LogUnavailable | LogClosed} it cannot be read or given now */
  async name(): Promise<LogName> {
    this.#known ??= this.#name();
    try {
      return await this.#known;
    } catch (error) {
      this.#known = null;
      throw error instanceof AppendOutcomeUnknown ? new LogUnavailable({ cause: error }) : error;
    }
  }
}

async function nameOf(reader: Omit<Reader, 'naming'>, appender: Appender, newId: () => string): Promise<LogName> {
  const found = await nameIn(reader);
  if (found !== null) return found;
  const identity = newId();
  const event = { id: newId(), type: 'LogNamed', data: JSON.stringify({ identity }), metadata: {} };
  const stream = reader.names.identityStream;
  try {
    const append = { stream, events: [event], expected: 'none', metadata: ['{}'] } as const;
    return { identity, position: (await appender.append(append, stream)).position };
  } catch (error) {
    if (!(error instanceof RevisionConflict)) throw error;
    return await untilVisible(() => nameIn(reader), reader);
  }
}
