/** Modules that are not part of the page's first one: each loads when a component first needs it. */
import type { ReadonlySignal } from '@preact/signals';
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Loaded, Resource } from './loaded.js';

/** Reads Markdown: loads with the first draft. */
export const markdown = chunk(() => import('../record/markdown.js'));

/** Places graphs: loads with the first graph. */
export const graphLayout = chunk(() => import('../record/graph-layout.js'));

export interface Chunk<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  load(): void;
}

function chunk<T>(load: () => Promise<T>): Chunk<T> {
  const state = signal<Loaded<T>>({ status: 'loading' });
  let isAsked = false;
  return {
    state,
    load() {
      if (isAsked) return;
      isAsked = true;
      load().then(
        (value) => (state.value = { status: 'ready', value }),
        () => (state.value = { status: 'failed', error: new Error('A part of this page could not be loaded.') }),
      );
    },
  };
}

/** The state of a chunk, which loads from now on. Browsers remember that a module failed: only a new page tries again. */
export function useChunk<T>({ state, load }: Chunk<T>): Resource<T> {
  useEffect(load, []);
  return { state, reload: () => window.location.reload() };
}
