/** Sessions: what a browser holds in place of a key. A session ends with its key, after its time, or when it is signed out. */
import { RevisionConflict } from '../eventlog/errors.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { System } from '../system/system.js';
import type { SessionFact } from './events.js';
import { sessionEventReader } from './events.js';
import type { PassDeps, PassStreams } from './pass-streams.js';
import { isPassText, passStreams } from './pass-streams.js';

/** How long a session lasts, in milliseconds. */
export const SESSION_MS = 12 * 3_600_000;
/** Sessions known here without a read of the log; the one read longest ago is forgotten first. */
const MAX_KNOWN = 10_000;

/** A session that was opened. */
export interface Session {
  /** SHA-256 of its text. */
  readonly id: string;
  /** Name of the key. */
  readonly name: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

export class SessionStore {
  readonly #system: System;
  readonly #streams: PassStreams<SessionFact>;
  /** By id; null: it was signed out. */
  readonly #known = new BoundedMap<string, Session | null>(MAX_KNOWN);
  readonly #listeners = new Set<() => void>();

  constructor(deps: PassDeps) {
    this.#system = deps.system;
    this.#streams = passStreams('session', sessionEventReader, deps);
  }

  /** Opens a session of a key; the only answer with its text. Throws as an append does. */
  async open(name: string): Promise<{ readonly text: string; readonly session: Session }> {
    const { secret, sha256, now } = this.#system;
    const text = secret();
    const id = sha256(text);
    const expiresAt = new Date(Date.parse(now()) + SESSION_MS).toISOString();
    await this.#streams.append(id, { type: 'SessionOpened', data: { name, expiresAt } }, []);
    return { text, session: { id, name, expiresAt } };
  }

  /** The session with this text; null when there is none, or it has ended. @throws {LogUnavailable | LookupsCrowded} */
  async find(text: string): Promise<Session | null> {
    return isPassText(text) ? await this.withId(this.#system.sha256(text)) : null;
  }

  /** The same by its id. @throws {LogUnavailable | LookupsCrowded} */
  async withId(id: string): Promise<Session | null> {
    const known = this.#known.get(id);
    const session = known === undefined ? await this.#read(id) : known;
    return session !== null && session.expiresAt > this.#system.now() ? session : null;
  }

  /** Whether a session was signed out, as far as is known here. */
  isEnded(id: string): boolean {
    return this.#known.get(id) === null;
  }

  /** Signs out. When several do so at once, one end is recorded. */
  async end(id: string): Promise<void> {
    const events = await this.#streams.read(id);
    if (events.length !== 1) return;
    try {
      await this.#streams.append(id, { type: 'SessionEnded', data: {} }, events);
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
    this.#forget(id);
  }

  /** Must be called with each event of the log, of whatever stream. */
  recorded({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): void {
    const id = type === 'SessionEnded' ? this.#streams.idOf(stream) : null;
    if (id !== null) this.#forget(id);
  }

  /** Calls back after each end of a session. Returns a function that cancels this. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stop(): Promise<void> {
    return this.#streams.stop();
  }

  async #read(id: string): Promise<Session | null> {
    const [opened, ended] = await this.#streams.read(id);
    // It may have been signed out since it was read.
    if (opened?.type !== 'SessionOpened' || this.#known.get(id) === null) return null;
    const session = ended === undefined ? { id, ...opened.data } : null;
    this.#known.set(id, session);
    return session;
  }

  #forget(id: string): void {
    this.#known.set(id, null);
    for (const listener of this.#listeners) listener();
  }
}
