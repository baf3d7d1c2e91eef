/** Who may enter: by a key, by a session or ticket that stands for one, or anyone while there are no keys. */
import { LogUnavailable } from '../eventlog/errors.js';
import type { RecordedEvent } from '../eventlog/port.js';
import type { System } from '../system/system.js';
import { inTime } from '../system/async/deadline.js';
import type { Grant } from './caller.js';
import type { Session } from './sessions.js';
import { SessionStore } from './sessions.js';
import type { Key } from './state.js';
import { keyEnded } from './state.js';
import type { KeyStoreOptions } from './store.js';
import { KeyStore } from './store.js';
import { TicketStore } from './tickets.js';

/** How long a caller may wait for a read of the log, in milliseconds. */
const LOOKUP_MS = 5_000;
/** Interval at which open connections are checked for expired grants, in milliseconds. */
const SWEEP_MS = 500;

/** Why a key, session or ticket does not authenticate its bearer. */
export type Refusal = 'unknown' | 'revoked' | 'expired';

/** The grant of a named key, direct or by a session or ticket. */
export interface KeyGrant extends Grant {
  readonly actor: string;
}

/** The result of looking up a key, session or ticket. */
export type Found = { readonly grant: KeyGrant } | { readonly grant: null; readonly refusal: Refusal };

/** The session or ticket shown in place of a key. */
interface Credential {
  readonly session?: string | null;
  /** When it ends, ISO 8601. */
  readonly until?: string | null;
}

interface Watch {
  readonly grant: Grant;
  readonly onOver: () => void;
}

export class Authenticator {
  readonly keys: KeyStore;
  readonly sessions: SessionStore;
  readonly tickets: TicketStore;
  readonly #system: KeyStoreOptions['system'];
  readonly #recentNow: () => string;
  readonly #watches = new Set<Watch>();
  #cancelSweep: (() => void) | null = null;

  constructor(options: KeyStoreOptions) {
    this.#system = options.system;
    this.#recentNow = recentNow(options.system);
    this.keys = new KeyStore(options);
    this.sessions = new SessionStore(options);
    this.tickets = new TicketStore(options);
    this.keys.onChange(() => this.#endWatches());
    this.sessions.onChange(() => this.#endWatches());
  }

  /** Whether no key was ever added: then everybody may do everything. @throws {KeysCorrupt} it cannot be known */
  get isOpen(): boolean {
    return this.keys.isOpen;
  }

  /** @throws {KeysCorrupt | LogUnavailable} */
  async byKey(text: string): Promise<Found> {
    const key = this.keys.known(text) ?? (await this.#lookUp(() => this.keys.find(text)));
    return this.#found(key, {});
  }

  /** @throws {KeysCorrupt | LogUnavailable | LookupsCrowded} */
  async bySession(text: string): Promise<Found> {
    return this.#foundIn(await this.#lookUp(() => this.sessions.find(text)));
  }

  /** Uses the ticket up, whether or not its key is still good. @throws {KeysCorrupt | LogUnavailable | LookupsCrowded} */
  async byTicket(text: string): Promise<Found> {
    const ticket = await this.#lookUp(() => this.tickets.redeem(text));
    if (ticket === null) return UNKNOWN;
    const { name, session } = ticket;
    if (session === null) return this.#found(this.keys.named(name), {});
    // Ends with its session, and so does what it opens.
    return this.#foundIn(await this.#lookUp(() => this.sessions.withId(session)));
  }

  /** Opens a session for the bearer of a key; the only answer with its text. Throws as an append does. */
  async signIn(grant: KeyGrant): Promise<{ readonly text: string; readonly grant: KeyGrant }> {
    const { text, session } = await this.sessions.open(grant.actor);
    return { text, grant: { ...grant, expiresAt: earlier(grant.expiresAt, session.expiresAt), session: session.id } };
  }

  /**
   * Calls back once when the grant has ended; at once when it has ended already. Returns a function that cancels this.
   */
  watch(grant: Grant, onOver: () => void): () => void {
    const watch = { grant, onOver };
    this.#watches.add(watch);
    if (this.#isOver(grant)) this.#end(watch);
    else this.#sweepLater();
    return () => void this.#watches.delete(watch);
  }

  /** Must be called with each event of the log, of whatever stream. */
  recorded(event: RecordedEvent): void {
    this.keys.recorded(event);
    this.sessions.recorded(event);
  }

  async stop(): Promise<void> {
    this.#cancelSweep?.();
    this.#watches.clear();
    await Promise.all([this.keys.stop(), this.sessions.stop(), this.tickets.stop()]);
  }

  #foundIn(session: Session | null): Found {
    if (session === null) return UNKNOWN;
    return this.#found(this.keys.named(session.name), { session: session.id, until: session.expiresAt });
  }

  #found(key: Key | null, { session = null, until = null }: Credential): Found {
    if (key === null) return UNKNOWN;
    const now = this.#recentNow();
    const refusal = keyEnded(key, now);
    if (refusal !== null) return { grant: null, refusal };
    this.keys.used(key, now);
    const { name, scopes, expiresAt } = key;
    return { grant: { actor: name, scopes, expiresAt: earlier(expiresAt, until), session } };
  }

  #lookUp<T>(work: () => Promise<T>): Promise<T> {
    return inTime(work, { system: this.#system, maxMs: LOOKUP_MS, late: () => new LogUnavailable() });
  }

  #isOver({ actor, expiresAt, session }: Grant): boolean {
    try {
      if (actor === null) return !this.isOpen;
      const now = this.#system.now();
      const key = this.keys.named(actor);
      if (key === null || keyEnded(key, now) !== null) return true;
      if (session !== null && this.sessions.isEnded(session)) return true;
      return expiresAt !== null && expiresAt <= now;
    } catch {
      // With unreadable keys nobody is authenticated.
      return true;
    }
  }

  #endWatches(): void {
    for (const watch of this.#watches) if (this.#isOver(watch.grant)) this.#end(watch);
  }

  #end(watch: Watch): void {
    this.#watches.delete(watch);
    watch.onOver();
  }

  #sweepLater(): void {
    this.#cancelSweep ??= this.#system.after(SWEEP_MS, () => {
      this.#cancelSweep = null;
      this.#endWatches();
      if (this.#watches.size > 0) this.#sweepLater();
    });
  }
}

const UNKNOWN: Found = { grant: null, refusal: 'unknown' };

/** How old the cached time may be that expiry is checked against, in milliseconds. */
const RECENT_MS = 20;

/** The time, cached for a moment: formatting it for each request would cost more than the rest of the check. */
function recentNow({ now, monotonicMs }: Pick<System, 'now' | 'monotonicMs'>): () => string {
  let [text, untilMs] = ['', Number.NEGATIVE_INFINITY];
  return () => {
    const nowMs = monotonicMs();
    if (nowMs >= untilMs) [text, untilMs] = [now(), nowMs + RECENT_MS];
    return text;
  };
}

/** Times as ISO 8601 text compare as times. */
function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
