/** Data that loads while a component shows it. */
import type { ReadonlySignal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export type Loaded<T> =
  | { readonly status: 'loading' }
  | { readonly status: 'ready'; readonly value: T }
  | { readonly status: 'failed'; readonly error: unknown };

export interface Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  /** Loads again; the old value stays until then. */
  reload(): void;
}

/**
 * Loads when the component mounts and when `key` changes, and aborts the previous load.
 *
 * @param key identifies the data
 * @param onFailure gets the error of a failed load
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
