/** Something that is asked for as long as a component shows it. */
import type { ReadonlySignal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export type Loaded<T> =
  | { readonly status: 'loading' }
  | { readonly status: 'ready'; readonly value: T }
  | { readonly status: 'failed'; readonly error: unknown };

export interface Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  /** Asks again; what is shown stays until the answer is there. */
  reload(): void;
}

/**
 * Loads when the component appears and whenever `key` changes; what is under way then, or when it goes, is aborted.
 *
 * @param key names what is loaded
 * @param onFailure is told why it could not be
 */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  onFailure?: (error: unknown) => void,
): Resource<T> {
  const state = useSignal<Loaded<T>>({ status: 'loading' });
  const round = useSignal(0);
  const isReload = useSignal('');
  useEffect(() => {
    const abort = new AbortController();
    if (isReload.value !== key) state.value = { status: 'loading' };
    isReload.value = key;
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) state.value = { status: 'ready', value };
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        onFailure?.(error);
        state.value = { status: 'failed', error };
      },
    );
    return () => abort.abort();
  }, [key, round.value]);
  return { state, reload: () => (round.value += 1) };
}
