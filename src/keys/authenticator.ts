/** Authenticates callers: by a key, by a session or ticket that stands for a key, or anyone while no key was added. */
import { LogUnavailable } from '../eventlog/errors.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { inTime } from '../system/async/deadline.js';
import type { Grant } from './caller.js';
import { IdSecret } from './id-secret.js';
import type { Session } from './sessions.js';
import { SessionStore } from './sessions.js';
import type { Key, KeyStoreOptions } from './store.js';
import { keyEnded, KeyStore } from './store.js';
import { TicketStore } from './tickets.js';

/** Time limit of a read of the log for one caller, in milliseconds. */
const LOOKUP_MS = 5_000;
/** Interval at which open connections are checked for expired grants, in milliseconds. */
const SWEEP_MS = 500;

/** Why a key, session or ticket is refused. */
export type Refusal = 'unknown' | 'revoked' | 'expired';

/** The grant of a named key, direct or by a session or ticket. */
export interface KeyGrant extends Grant {
  readonly actor: string;
}

/** The result of looking up a key, session or ticket. */
export type Found =
  | { readonly grant: KeyGrant }
  /** `actor`: name of the key, or null if it is unknown. */
  | { readonly grant: null; readonly refusal: Refusal; readonly actor: string | null };

interface Watch {
  readonly grant: Grant;
  readonly onEnd: () => void;
}

export class Authenticator {
  readonly categories = ['keys', 'session'];
  readonly keys: KeyStore;
  readonly sessions: SessionStore;
  readonly tickets: TicketStore;
  readonly idSecret: IdSecret;
  readonly #system: KeyStoreOptions['system'];
  readonly #watches = new Set<Watch>();
  #cancelSweep: (() => void) | null = null;

  constructor(options: KeyStoreOptions) {
    this.#system = options.system;
    this.keys = new KeyStore(options);
    this.sessions = new SessionStore(options);
    this.tickets = new TicketStore(options);
    this.idSecret = new IdSecret(options);
    this.keys.onChange(() => this.#endWatches());
    this.sessions.onChange(() => this.#endWatches());
  }

  /** Whether no key was ever added, so that every caller may do everything. @throws {KeysCorrupt} */
  get isOpen(): boolean {
    return this.keys.isOpen;
  }

  /** @throws {KeysCorrupt | LogUnavailable} */
  async byKey(text: string): Promise<Found> {
    const key = this.keys.known(text) ?? (await this.#lookUp(() => this.keys.find(text)));
    return this.#found(key, null);
  }

  /** @throws {KeysCorrupt | LogUnavailable | TooManyLookups} */
  async bySession(text: string): Promise<Found> {
    return this.#foundIn(await this.#lookUp(() => this.sessions.find(text)));
  }

  /** Redeems the ticket, even if its key is no longer valid. @throws {KeysCorrupt | LogUnavailable | TooManyLookups} */
  async byTicket(text: string): Promise<Found> {
    const ticket = await this.#lookUp(() => this.tickets.redeem(text));
    if (ticket === null) return UNKNOWN;
    const { name, session } = ticket;
    if (session === null) return this.#found(this.keys.named(name), null);
    // The ticket, and the stream that it opens, end with its session.
    return this.#foundIn(await this.#lookUp(() => this.sessions.withId(session)));
  }

  /** Opens a session for the bearer of a key. The text cannot be read again. Throws as an append does. */
  async signIn(grant: KeyGrant): Promise<{ readonly text: string; readonly grant: KeyGrant }> {
    const { text, session } = await this.sessions.open(grant.actor);
    return { text, grant: { ...grant, expiresAt: earlier(grant.expiresAt, session.expiresAt), session: session.id } };
  }

  /** Calls `onEnd` once, when the grant ends or if it has ended already. Returns a function that cancels the watch. */
  watch(grant: Grant, onEnd: () => void): () => void {
    const watch = { grant, onEnd };
    this.#watches.add(watch);
    if (this.#hasEnded(grant)) this.#end(watch);
    else this.#scheduleSweep();
    return () => void this.#watches.delete(watch);
  }

  /** The caller must pass every event of these categories. */
  onEventRecorded(event: RecordedEvent): void {
    this.keys.onEventRecorded(event);
    this.sessions.onEventRecorded(event);
  }

  async stop(): Promise<void> {
    this.#cancelSweep?.();
    this.#watches.clear();
    await Promise.all([this.keys.stop(), this.sessions.stop(), this.tickets.stop(), this.idSecret.stop()]);
  }

  #foundIn(session: Session | null): Found {
    if (session === null) return UNKNOWN;
    return this.#found(this.keys.named(session.name), session);
  }

  /** @param session in place of the key, or null if the caller sent the key */
  #found(key: Key | null, session: Session | null): Found {
    if (key === null) return UNKNOWN;
    const now = this.#system.now();
    const refusal = keyEnded(key, now);
    if (refusal !== null) return { grant: null, refusal, actor: key.name };
    this.keys.recordUse(key, now);
    const { name, scopes, expiresAt } = key;
    const end = earlier(expiresAt, session?.expiresAt ?? null);
    return { grant: { actor: name, scopes, expiresAt: end, session: session?.id ?? null } };
  }

  #lookUp<T>(work: () => Promise<T>): Promise<T> {
    return inTime(work, { system: this.#system, maxMs: LOOKUP_MS, late: () => new LogUnavailable() });
  }

  #hasEnded({ actor, expiresAt, session }: Grant): boolean {
    try {
      if (actor === null) return !this.isOpen;
      const now = this.#system.now();
      const key = this.keys.named(actor);
      if (key === null || keyEnded(key, now) !== null) return true;
      if (session !== null && this.sessions.isSignedOut(session)) return true;
      return expiresAt !== null && expiresAt <= now;
    } catch {
      // While the keys are unreadable, no caller is authenticated.
      return true;
    }
  }

  #endWatches(): void {
    for (const watch of this.#watches) if (this.#hasEnded(watch.grant)) this.#end(watch);
  }

  #end(watch: Watch): void {
    this.#watches.delete(watch);
    watch.onEnd();
  }

  #scheduleSweep(): void {
    this.#cancelSweep ??= this.#system.after(SWEEP_MS, () => {
      this.#cancelSweep = null;
      this.#endWatches();
      if (this.#watches.size > 0) this.#scheduleSweep();
    });
  }
}

const UNKNOWN: Found = { grant: null, refusal: 'unknown', actor: null };

/** ISO 8601 texts sort as the times they stand for. */
function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
