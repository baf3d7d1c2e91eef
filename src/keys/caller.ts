/** The caller of a request, and what it may do. */

/** The scopes of keys; none implies another. */
export const SCOPES = ['read', 'run', 'approve', 'author', 'documents', 'audit', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

export interface Caller {
  /** The name of the key, or null while the service has no keys. Recorded in events, never read from a body. */
  readonly actor: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** An authenticated caller. */
export interface Grant extends Caller {
  /** When the authentication expires, ISO 8601, or null if it lasts until the key is revoked. */
  readonly expiresAt: string | null;
  /** Id of the caller's session, or null if the caller sent a key or the service has no keys. */
  readonly session: string | null;
}

/** The grant of every caller of a service without keys. */
export const ANYONE: Grant = { actor: null, scopes: new Set(SCOPES), expiresAt: null, session: null };

/** Who may use a route: every caller, every key, keys with this scope, or keys with one of these scopes. */
export type Access = 'open' | 'key' | Scope | readonly Scope[];
