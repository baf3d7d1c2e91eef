/** Values in the browser's storage, one for each key, so that the users of one browser do not see each other's. */
import type { ReadonlySignal } from '@preact/signals';
import { computed, signal } from '@preact/signals';
import { actor } from './session.js';
import { readStored, store } from './storage.js';

export interface OwnStored<T> {
  /** The value of the key in use; that of a service without keys before the session is known. */
  readonly value: ReadonlySignal<T>;
  set(value: T): void;
}

/** @param read the value in what is stored, or in null if nothing is */
export function ownStored<T>(name: string, read: (stored: unknown) => T): OwnStored<T> {
  /** Values set since the page was loaded: the browser may refuse to store them. */
  const changed = signal<ReadonlyMap<string, T>>(new Map());
  const item = computed(() => itemOf(name, actor.value));
  const stored = computed(() => read(readStored(item.value)));
  return {
    value: computed(() => changed.value.get(item.value) ?? stored.value),
    set(next) {
      store(item.peek(), next);
      changed.value = new Map(changed.peek()).set(item.peek(), next);
    },
  };
}

/** Names of keys contain no spaces. */
function itemOf(name: string, key: string | null): string {
  return key === null ? name : `${name} ${key}`;
}
