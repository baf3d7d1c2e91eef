/** Signing in with a key, so that a page need not keep it: the browser keeps a cookie that scripts cannot read. */
import type { Session as SignedIn, SessionRequest, Ticket } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';

/** For pages of the service's own origin, by a client without a key. */
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
