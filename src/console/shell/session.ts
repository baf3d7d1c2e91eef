/** Who looks at the page, and what they may do. */
import { computed, signal } from '@preact/signals';
import { UnauthorizedError } from '../../client/errors.js';
import type { Scope, Session } from '../../generated/schemas.js';
import { isAway } from '../ui/states.js';
import { council } from './council.js';

export type SessionState =
  | { readonly status: 'asking' }
  /** The service wants a key. `left`: who was in before, in this tab; null: nobody. */
  | { readonly status: 'locked'; readonly left: string | null }
  /** `isOpen`: it has no keys, and lets everybody in. */
  | { readonly status: 'in'; readonly session: Session; readonly isOpen: boolean };

export const session = signal<SessionState>({ status: 'asking' });

/** Name of the key by which the page is used; null where there are no keys. */
export const actor = computed(() => (session.value.status === 'in' ? session.value.session.actor : null));

/** Whether something may be asked for: what may not be done has no button. */
export function may(scope: Scope): boolean {
  return session.value.status === 'in' && session.value.session.scopes.includes(scope);
}

/** Asks the service who this is, for as long as it does not answer. */
export async function findSession(): Promise<void> {
  for (;;) {
    try {
      enter(await council.session.get());
      isAway.value = false;
      return;
    } catch (error) {
      if (error instanceof UnauthorizedError) {
        lock();
        return;
      }
      isAway.value = true;
    }
  }
}

/** Changes a key for a session. @throws {UnauthorizedError} */
export async function signIn(key: string): Promise<void> {
  enter(await council.session.signIn(key));
}

export async function signOut(): Promise<void> {
  await council.session.signOut();
  lock();
}

/** A session that has ended, or a key that was revoked, is found out by a refused call. */
export function onRefused(error: unknown): void {
  if (error instanceof UnauthorizedError) lock();
}

function lock(): void {
  const now = session.peek();
  session.value = { status: 'locked', left: now.status === 'locked' ? now.left : actor.peek() };
}

function enter(found: Session): void {
  session.value = { status: 'in', session: found, isOpen: found.actor === null };
}
