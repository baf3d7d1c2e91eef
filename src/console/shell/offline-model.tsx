/** The mark for a service whose default is the offline model: it asks no language model. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { council } from './council.js';
import { may } from './session.js';

const isOffline = signal(false);

/** On every page. A service reads its providers at its start, so the console asks once per visit. */
export function OfflineMark() {
  const mayRead = may('read');
  useEffect(() => {
    if (!mayRead) return undefined;
    const abort = new AbortController();
    council.providers({ signal: abort.signal }).then(
      ([first]) => (isOffline.value = first?.name === 'offline'),
      () => undefined,
    );
    return () => abort.abort();
  }, [mayRead]);
  if (!mayRead || !isOffline.value) return null;
  return <p class="offline-mark">Offline model: no language model is asked</p>;
}
