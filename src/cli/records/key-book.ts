/** The keys as the commands see them: at a running service, or on the log itself. */
import type { Key } from '../../generated/schemas.js';
import type { Scope } from '../../keys/caller.js';

/** A key to add. */
export interface WantedKey {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A duration such as `30d`, or null if the key never expires. */
  readonly expires: string | null;
}

export interface KeyBook {
  /** Resolves with the text of the new key, which cannot be read again. */
  add(wanted: WantedKey): Promise<string>;
  /** Every key that was ever added, the oldest first. */
  list(): Promise<readonly Key[]>;
  /** @throws {KeyUnknown} */
  revoke(name: string): Promise<void>;
}
