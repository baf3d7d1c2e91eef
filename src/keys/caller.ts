/** The caller of a request, and what it may do. */

/** What a key may be given; none implies another. */
export const SCOPES = ['read', 'run', 'approve', 'author', 'documents', 'audit', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

/** Who sent a request. */
export interface Caller {
  /** The name of the key; null while the service has none. Recorded in events, never taken from a body. */
  readonly actor: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** A caller, and until when they are authenticated. */
export interface Grant extends Caller {
  /** ISO 8601; null: until it is revoked. */
  readonly expiresAt: string | null;
  /** Id of the session by which they came; null: they came by a key, or there are no keys. */
  readonly session: string | null;
}

/** The grant of everybody who reaches a service without keys. */
export const ANYONE: Grant = { actor: null, scopes: new Set(SCOPES), expiresAt: null, session: null };

/** Who may use a route: everybody, everybody with a key, or keys with this scope, or with one of these scopes. */
export type Access = 'open' | 'key' | Scope | readonly Scope[];
