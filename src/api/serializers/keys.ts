/** Serializers of keys and sessions. */
import type { Key, NewKey, Session } from '../../generated/schemas.js';
import type { Grant } from '../../keys/caller.js';
import type { Key as KeyState, NewKey as AddedKey } from '../../keys/store.js';

/** A key as it is listed. */
export function keyRecord({ name, scopes, addedAt, addedBy, expiresAt, revoked, lastUsed }: KeyState): Key {
  return {
    name,
    scopes: [...scopes],
    created_at: addedAt,
    created_by: addedBy,
    expires_at: expiresAt,
    revoked_at: revoked?.at ?? null,
    revoked_by: revoked?.by ?? null,
    last_used: lastUsed,
  };
}

/** A key with its text: the one answer that ever shows it. */
export function newKey({ key, text }: AddedKey): NewKey {
  const { name, scopes, addedAt, expiresAt } = key;
  return { name, scopes: [...scopes], created_at: addedAt, expires_at: expiresAt, key: text };
}

/** The caller. */
export function session({ actor, scopes, expiresAt }: Grant): Session {
  return { actor, scopes: [...scopes], expires_at: expiresAt };
}
