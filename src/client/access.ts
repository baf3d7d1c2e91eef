/** The keys of a service, and sessions, which browsers hold in place of a key. */
import type {
  Key,
  KeyEventsPage,
  NewKey,
  Scope,
  Session as SignedIn,
  SessionRequest,
  Ticket,
} from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';

export interface AddKeyOptions extends CallOptions {
  /** 1 to 64 letters, digits and `. _ @ + -`. No other key can have it, even after the revocation. */
  readonly name: string;
  /** At least one. */
  readonly scopes: readonly Scope[];
  /** A duration such as `30d`, `12h`, `90m` or `45s`, a century at most. Default: the key does not expire. */
  readonly expiresIn?: string | undefined;
  /** A time instead of `expiresIn`; as text in ISO 8601. */
  readonly expiresAt?: Date | string | undefined;
}

export interface KeyEventsOptions extends CallOptions {
  /** `seq` of the first event. Default: 0. */
  readonly from?: number | undefined;
  /** Largest number of events. Default: that of the service. */
  readonly limit?: number | undefined;
}

/** `events` needs a key with the scope `audit`, `list` one with `admin` or `audit`, and all other calls one with `admin`. */

export class Keys {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Every key that was ever added, the oldest first. */
  list({ signal }: CallOptions = {}): Promise<readonly Key[]> {
    return this.#api.json({ path: pathOf('keys'), signal });
  }

  /**
   * Adds a key. Only this answer contains its text, as `key`. The request is sent once: if it throws an UnreachableError,
   * the key may exist, so revoke it.
   *
   * @throws {InvalidError | ConflictError | ForbiddenError}
   */
  add({ name, scopes, expiresIn, expiresAt, signal }: AddKeyOptions): Promise<NewKey> {
    const body = {
      name,
      scopes,
      ...(expiresIn !== undefined && { expires_in: expiresIn }),
      ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    };
    return this.#api.json({ method: 'POST', path: pathOf('keys'), body, signal });
  }

  /** Revokes a key and ends its sessions and open streams. @throws {NotFoundError} */
  async revoke(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('keys', name), signal, isRepeatable: true });
  }

  /** A page of the recorded events of the keys. */
  events({ from, limit, signal }: KeyEventsOptions = {}): Promise<KeyEventsPage> {
    return this.#api.json({ path: pathOf('keys', 'events'), query: { from, limit }, signal });
  }
}

/**
 * Exchanges a key for a session, so that a page does not store the key: the browser has a cookie that scripts cannot read.
 * For pages of the service's own origin, and for a client without a key.
 */
export class Session {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Exchanges a key for a session of 12 hours. @throws {UnauthorizedError} */
  signIn(key: string, { signal }: CallOptions = {}): Promise<SignedIn> {
    const body: SessionRequest = { key };
    return this.#api.json({ method: 'POST', path: pathOf('session'), body, signal });
  }

  /** The name and the scopes of the caller's session or key. @throws {UnauthorizedError} */
  get({ signal }: CallOptions = {}): Promise<SignedIn> {
    return this.#api.json({ path: pathOf('session'), signal });
  }

  /** Ends the session on all instances. */
  async signOut({ signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('session'), signal });
  }

  /** A ticket for a host that cannot send headers: `?ticket=` opens one socket or event stream within 30 seconds. */
  ticket({ signal }: CallOptions = {}): Promise<Ticket> {
    return this.#api.json({ method: 'POST', path: pathOf('tickets'), signal });
  }
}
