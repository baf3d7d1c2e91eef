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
  /** Unique for ever: a revoked or expired key keeps its name. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A time such as `30d` or `12h`. Default: until it is revoked. */
  readonly expiresIn?: string | undefined;
  readonly expiresAt?: Date | string | undefined;
}

/** Which events of the keys' record are wanted: `limit` of them at most, the first with `seq` `from`. */
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

  /**
   * Adds a key. The answer alone holds its text, `key`. The request is not retried: if its answer is lost, the key
   * exists and nobody has its text.
   */
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
 * Exchanges a key for a session, so that a page need not keep the key: the browser holds a cookie that scripts cannot
 * read. For pages of the service's own origin, and a client without a key.
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

  /** The caller's name and scopes, by session or by key. @throws {UnauthorizedError} */
  get({ signal }: CallOptions = {}): Promise<SignedIn> {
    return this.#api.json({ path: pathOf('session'), signal });
  }

  /** Ends the session, on every instance. */
  async signOut({ signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('session'), signal });
  }

  /** A ticket: as `?ticket=` it opens one socket or event stream within 30 seconds, where no header can be sent. */
  ticket({ signal }: CallOptions = {}): Promise<Ticket> {
    return this.#api.json({ method: 'POST', path: pathOf('tickets'), signal });
  }
}
