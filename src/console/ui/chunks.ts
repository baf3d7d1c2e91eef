/** Modules that load when a component first needs them. */
import type { ReadonlySignal } from '@preact/signals';
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Loaded, Resource } from './loaded.js';

/** The Markdown parser; loads with the first draft. */
export const markdown = chunk(() => import('../record/markdown.js'));

/** The graph layout; loads with the first graph. */
export const graphLayout = chunk(() => import('../record/graph-layout.js'));

export interface Chunk<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  load(): void;
}

/** A module that loads once, when a component first needs it. */
export function chunk<T>(load: () => Promise<T>): Chunk<T> {
  const state = signal<Loaded<T>>({ status: 'loading' });
  let isAsked = false;
  return {
    state,
    load() {
      if (isAsked) return;
      isAsked = true;
      load().then(
        (value) => (state.value = { status: 'ready', value }),
        () =>
          (state.value = {
            status: 'failed',
            error: new Error('A part of this page could not load. Reload the page.'),
          }),
      );
    },
  };
}

/** Loads a chunk. Browsers remember that a module failed, so only a page reload tries again. */
export function useChunk<T>({ state, load }: Chunk<T>): Resource<T> {
  useEffect(load, []);
  return { state, reload: () => window.location.reload() };
}
