/** Sessions, which browsers hold in place of a key. A session ends with its key, after 12 hours, or at sign-out. */
import { RevisionConflict } from '../eventlog/errors.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { System } from '../system/system.js';
import type { SessionFact } from './events.js';
import { sessionEventReader } from './events.js';
import type { PassDeps, PassStreams } from './pass-streams.js';
import { isPassText, passStreams } from './pass-streams.js';

/** Lifetime of a session, in milliseconds. */
export const SESSION_MS = 12 * 3_600_000;
/** Largest number of cached sessions; the one read longest ago is dropped first. */
const MAX_KNOWN = 10_000;

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
  /** Sessions by id, or null for one that was signed out. */
  readonly #known = new BoundedMap<string, Session | null>(MAX_KNOWN);
  readonly #listeners = new Set<() => void>();

  constructor(deps: PassDeps) {
    this.#system = deps.system;
    this.#streams = passStreams('session', sessionEventReader, deps);
  }

  /** Opens a session for a key. The text cannot be read again. Throws as an append does. */
  async open(name: string): Promise<{ readonly text: string; readonly session: Session }> {
    const { secret, sha256, now } = this.#system;
    const text = secret();
    const id = sha256(text);
    const expiresAt = new Date(Date.parse(now()) + SESSION_MS).toISOString();
    await this.#streams.append(id, { type: 'SessionOpened', data: { name, expiresAt } }, []);
    return { text, session: { id, name, expiresAt } };
  }

  /** The session with this text, or null if it is unknown or has ended. @throws {LogUnavailable | TooManyLookups} */
  async find(text: string): Promise<Session | null> {
    return isPassText(text) ? await this.withId(this.#system.sha256(text)) : null;
  }

  /** The session with this id, or null as above. @throws {LogUnavailable | TooManyLookups} */
  async withId(id: string): Promise<Session | null> {
    const known = this.#known.get(id);
    const session = known === undefined ? await this.#read(id) : known;
    return session !== null && session.expiresAt > this.#system.now() ? session : null;
  }

  /** Whether this instance knows that a session was signed out. */
  isSignedOut(id: string): boolean {
    return this.#known.get(id) === null;
  }

  /** Signs out. Of concurrent calls, one records the end. */
  async signOut(id: string): Promise<void> {
    const events = await this.#streams.read(id);
    if (events.length !== 1) return;
    try {
      await this.#streams.append(id, { type: 'SessionEnded', data: {} }, events);
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
    this.#forget(id);
  }

  /** The caller must pass every event of the log, of any stream. */
  onEventRecorded({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): void {
    const id = type === 'SessionEnded' ? this.#streams.idOf(stream) : null;
    if (id !== null) this.#forget(id);
  }

  /** Calls the listener after each sign-out. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stop(): Promise<void> {
    return this.#streams.stop();
  }

  async #read(id: string): Promise<Session | null> {
    const [opened, ended] = await this.#streams.read(id);
    // The session may have been signed out during the read.
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
