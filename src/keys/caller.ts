/** Who asks, and what they may do (contract, section 5). */

/** What a key may be given; none implies another. */
export const SCOPES = ['read', 'run', 'approve', 'author', 'documents', 'audit', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** Who sent a request. */
export interface Caller {
  /** The name of the key; null while the service has none. Recorded in events, never taken from a body. */
  readonly actor: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** Whoever reaches a service without keys. */
export const ANYONE: Caller = { actor: null, scopes: new Set(SCOPES) };
