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

/** A caller, and how long they are let in. */
export interface Grant extends Caller {
  /** ISO 8601; null: until it is revoked. */
  readonly expiresAt: string | null;
  /** Id of the session by which they came; null: by a key, or there are none. */
  readonly session: string | null;
}

/** Whoever reaches a service without keys. */
export const ANYONE: Grant = { actor: null, scopes: new Set(SCOPES), expiresAt: null, session: null };

/** Who may ask for something: whoever comes, whoever has any key, or whose key has the scope, or one of them. */
export type Access = 'open' | 'key' | Scope | readonly Scope[];
