/** The user's session and permissions. */
import { computed, signal } from '@preact/signals';
import { UnauthorizedError } from '../../client/errors.js';
import type { Scope, Session } from '../../generated/schemas.js';
import { isServiceDown } from '../ui/states.js';
import { council } from './council.js';

export type SessionState =
  | { readonly status: 'asking' }
  /**
   * The service needs a key. `left`: the actor of the previous session in this tab, or null. `isEnded`: true if the service
   * ended that session, false if the user signed out.
   */
  | { readonly status: 'locked'; readonly left: string | null; readonly isEnded: boolean }
  /** `isOpen`: the service has no keys. */
  | { readonly status: 'in'; readonly session: Session; readonly isOpen: boolean };

export const session = signal<SessionState>({ status: 'asking' });

/** Name of the key in use, or null if the service has no keys. */
export const actor = computed(() => (session.value.status === 'in' ? session.value.session.actor : null));

/** Whether the session has a scope. Pages show no button for what it may not do. */
export function may(scope: Scope): boolean {
  return session.value.status === 'in' && session.value.session.scopes.includes(scope);
}

/** Reads the session; tries again until the service answers. */
export async function findSession(): Promise<void> {
  for (;;) {
    try {
      enter(await council.session.get());
      isServiceDown.value = false;
      return;
    } catch (error) {
      if (error instanceof UnauthorizedError) {
        lock();
        return;
      }
      isServiceDown.value = true;
    }
  }
}

/** Exchanges a key for a session. @throws {UnauthorizedError} */
export async function signIn(key: string): Promise<void> {
  enter(await council.session.signIn(key));
}

export async function signOut(): Promise<void> {
  await council.session.signOut();
  lock(false);
}

/** Shows the sign-in form after a call without a valid session. */
export function lockIfUnauthorized(error: unknown): void {
  if (error instanceof UnauthorizedError) lock();
}

function lock(isEnded = true): void {
  if (session.peek().status === 'locked') return;
  const left = actor.peek();
  session.value = { status: 'locked', left, isEnded: isEnded && left !== null };
}

function enter(found: Session): void {
  session.value = { status: 'in', session: found, isOpen: found.actor === null };
}
