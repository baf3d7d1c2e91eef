/** Modules that load when a component first needs them. */
import type { ReadonlySignal } from '@preact/signals';
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Loaded, Resource } from './loaded.js';

/** The Markdown parser; loads with the first draft. */
export const markdown = chunk(() => import('../../draft/markdown.js'));

/** What marks quotations in a draft; loads with the first draft that quotes. */
export const quotations = chunk(() => import('../../draft/quotations.js'));

/** A JSON value as a tree; loads with the first one. */
export const jsonTree = chunk(() => import('./json-tree.js'));

/** The graph layout; loads with the first graph. */
export const graphLayout = chunk(() => import('../record/graph-layout.js'));

/**
 * Waits until the service answers. Resolves with whether it was away before. A shared file sets none, because it contains all
 * modules.
 */
type UntilAnswer = () => Promise<boolean>;
let untilAnswer: UntilAnswer = async () => false;

/** Sets how a module that could not load waits for the service. */
export function waitForService(wait: UntilAnswer): void {
  untilAnswer = wait;
}

export interface Chunk<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  load(): void;
}

/** A module that loads when a component first needs it, or if the service is away then, when the service is back. */
export function chunk<T>(load: () => Promise<T>): Chunk<T> {
  const state = signal<Loaded<T>>({ status: 'loading' });
  let isAsked = false;
  return {
    state,
    load() {
      if (isAsked) return;
      isAsked = true;
      void whenAnswered(load).then((loaded) => (state.value = loaded));
    },
  };
}

async function whenAnswered<T>(load: () => Promise<T>): Promise<Loaded<T>> {
  let hasBeenAway = false;
  for (;;) {
    try {
      return { status: 'ready', value: await load() };
    } catch {
      if (!(await untilAnswer())) break;
      hasBeenAway = true;
    }
  }
  // The service is back with other modules, or this browser remembers that the module failed.
  if (hasBeenAway) window.location.reload();
  return { status: 'failed', error: new Error('A part of this page could not load. Reload the page.') };
}

export interface LaterProps<T> {
  readonly of: Chunk<T>;
  readonly children: (loaded: T) => ComponentChildren;
}

/** What a chunk shows, and nothing before it is loaded. */
export function Later<T>({ of, children }: LaterProps<T>): ComponentChildren {
  const { value: found } = useChunk(of).state;
  return found.status === 'ready' ? children(found.value) : null;
}

/** Loads a chunk. Some browsers remember that a module failed, so only a page reload tries again. */
export function useChunk<T>({ state, load }: Chunk<T>): Resource<T> {
  useEffect(load, []);
  return { state, reload: () => window.location.reload() };
}
