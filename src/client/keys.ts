/** The keys of a service: who may do what. */
import type { Key, KeyEventsPage, NewKey, Scope } from '../generated/schemas.js';
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
