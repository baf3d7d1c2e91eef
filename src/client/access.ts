/** Who may do what: the keys of a service, and sessions, which browsers hold in place of a key. */
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
  /** Given once and never again. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A time such as `30d` or `12h`. Default: until it is revoked. */
  readonly expiresIn?: string | undefined;
  readonly expiresAt?: Date | string | undefined;
}

/** What a page of the keys' record begins with, and how long it is. */
export interface KeyEventsOptions extends CallOptions {
  readonly from?: number | undefined;
  readonly limit?: number | undefined;
}

export class Keys {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Every key that was ever added. */
  list({ signal }: CallOptions = {}): Promise<readonly Key[]> {
    return this.#api.json({ path: pathOf('keys'), signal });
  }

  /** Adds one; its text, `key`, is shown this once. It is sent once: an answer that is lost leaves a key nobody has. */
  add({ name, scopes, expiresIn, expiresAt, signal }: AddKeyOptions): Promise<NewKey> {
    const body = {
      ...{ name, scopes },
      ...(expiresIn !== undefined && { expires_in: expiresIn }),
      ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    };
    return this.#api.json({ method: 'POST', path: pathOf('keys'), body, signal });
  }

  /** Ends a key, with its sessions and open streams. @throws {NotFoundError} */
  async revoke(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('keys', name), signal, isRepeatable: true });
  }

  /** The keys' own record, for auditors. */
  events({ from, limit, signal }: KeyEventsOptions = {}): Promise<KeyEventsPage> {
    return this.#api.json({ path: pathOf('keys', 'events'), query: { from, limit }, signal });
  }
}

/**
 * Signing in with a key, so that a page need not keep it: the browser keeps a cookie that scripts cannot read. For pages of
 * the service's own origin, by a client without a key.
 */
export class Session {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Changes a key for a session of 12 hours. @throws {UnauthorizedError} */
  signIn(key: string, { signal }: CallOptions = {}): Promise<SignedIn> {
    const body: SessionRequest = { key };
    return this.#api.json({ method: 'POST', path: pathOf('session'), body, signal });
  }

  /** Who asks, and what they may do; of a client with a key too. @throws {UnauthorizedError} */
  get({ signal }: CallOptions = {}): Promise<SignedIn> {
    return this.#api.json({ path: pathOf('session'), signal });
  }

  /** Ends the session, on every instance. */
  async signOut({ signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('session'), signal });
  }

  /** Opens one socket or event stream as `?ticket=`, within 30 seconds: for what can send no header. */
  ticket({ signal }: CallOptions = {}): Promise<Ticket> {
    return this.#api.json({ method: 'POST', path: pathOf('tickets'), signal });
  }
}
