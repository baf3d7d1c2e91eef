/** The keys of a log, folded from their stream. */
import type { StreamHead } from '../eventsourcing/handle-command.js';
import type { Scope } from './caller.js';
import { isScope } from './caller.js';
import type { KeyEvent } from './events.js';

/** A key without its text. */
export interface Key {
  readonly name: string;
  /** Lower-case hex SHA-256 of its text. */
  readonly hash: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Times are ISO 8601, UTC, milliseconds. */
  readonly addedAt: string;
  /**
   * Name of the key by which it was added or revoked; null: somebody with access to the log itself, or it is the first
   * key.
   */
  readonly addedBy: string | null;
  readonly expiresAt: string | null;
  readonly revoked: { readonly at: string; readonly by: string | null } | null;
  /** The last day in UTC on which it was used, as `YYYY-MM-DD`. */
  readonly lastUsed: string | null;
}

/** Why a key is no longer valid; null: it is valid. */
export function keyEnded({ revoked, expiresAt }: Key, now: string): 'revoked' | 'expired' | null {
  if (revoked !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : null;
}

/** A key after an event of its own; undefined while there is none. */
function evolveKey(key: Key | undefined, { type, at, data }: KeyEvent): Key | undefined {
  switch (type) {
    case 'KeyAdded': {
      const { name, hash, expiresAt, actor } = data;
      // A newer instance may know of scopes that mean nothing here.
      const scopes = new Set(data.scopes.filter(isScope));
      return { name, hash, scopes, addedAt: at, addedBy: actor, expiresAt, revoked: null, lastUsed: null };
    }
    case 'KeyRevoked':
      return key && { ...key, revoked: key.revoked ?? { at, by: data.actor } };
    case 'KeyUsed':
      return key && { ...key, lastUsed: data.day };
    default:
      return type satisfies never;
  }
}

/** All keys of a log, up to its last event. */
export class KeyRing {
  readonly #byName = new Map<string, Key>();
  readonly #names = new Map<string, string>();
  #head: StreamHead | null = null;

  /** Null: no key was ever added. */
  get head(): StreamHead | null {
    return this.#head;
  }

  /** How many were ever added. */
  get size(): number {
    return this.#byName.size;
  }

  /** In the order they were added. */
  all(): readonly Key[] {
    return [...this.#byName.values()];
  }

  named(name: string): Key | undefined {
    return this.#byName.get(name);
  }

  hashed(hash: string): Key | undefined {
    const name = this.#names.get(hash);
    return name === undefined ? undefined : this.#byName.get(name);
  }

  /** Takes the event after the head. */
  take(event: KeyEvent): void {
    const { name } = event.data;
    const key = evolveKey(this.#byName.get(name), event);
    if (key !== undefined) {
      this.#byName.set(name, key);
      this.#names.set(key.hash, name);
    }
    this.#head = { seq: event.seq, id: event.id, hash: event.hash };
  }
}
