/** The keys of a log, folded from their stream. */
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { headOf } from '../eventsourcing/aggregate.js';
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
  /** Name of the key that added it, or null if it is the first key or was added on the log itself; so for `revoked`. */
  readonly addedBy: string | null;
  readonly expiresAt: string | null;
  readonly revoked: { readonly at: string; readonly by: string | null } | null;
  /** The last day in UTC on which it was used, as `YYYY-MM-DD`. */
  readonly lastUsed: string | null;
}

/** Why a key is no longer valid, or null if it is valid. */
export function keyEnded({ revoked, expiresAt }: Key, now: string): 'revoked' | 'expired' | null {
  if (revoked !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : null;
}

/** A key after an event, or undefined before it is added. */
function evolveKey(key: Key | undefined, { type, at, data }: KeyEvent): Key | undefined {
  switch (type) {
    case 'KeyAdded': {
      const { name, hash, expiresAt, actor } = data;
      // A newer version of the service may have recorded scopes that this one does not know.
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

/** The keys of a log, folded from the events passed to `take`. */
export class KeyRing {
  readonly #byName = new Map<string, Key>();
  readonly #names = new Map<string, string>();
  #head: StreamHead | null = null;

  /** The last event, or null if no key was ever added. */
  get head(): StreamHead | null {
    return this.#head;
  }

  /** Number of keys that were ever added. */
  get size(): number {
    return this.#byName.size;
  }

  /** All keys in the order they were added. */
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

  /** Folds the next event. */
  take(event: KeyEvent): void {
    const { name } = event.data;
    const key = evolveKey(this.#byName.get(name), event);
    if (key !== undefined) {
      this.#byName.set(name, key);
      this.#names.set(key.hash, name);
    }
    this.#head = headOf(event);
  }
}
