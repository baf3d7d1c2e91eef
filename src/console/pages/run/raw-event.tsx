/** The event at the moment that is looked at, as it is recorded. */
import { exactly } from '../../ui/time.js';
import type { RunStore } from './store.js';

export function RawEvent({ store }: { readonly store: RunStore }) {
  const event = store.record.events[store.shown.value];
  if (event === undefined) return null;
  const { seq, id, type, at, data, hash } = event;
  const previous = store.record.events[seq - 1]?.hash ?? null;
  return (
    <section class="raw-event stack" aria-label="Raw event">
      <h3>
        Event {seq}: {type}
      </h3>
      <p class="small muted">
        <time datetime={at}>{exactly(at)}</time>
      </p>
      <pre class="raw" tabIndex={0}>
        {JSON.stringify({ seq, id, type, at, data }, null, 2)}
      </pre>
      <dl class="facts">
        <div>
          <dt>Hash</dt>
          <dd class="mono break">{hash}</dd>
        </div>
        <div>
          <dt>Hash of the event before</dt>
          <dd class="mono break">{previous ?? 'none: it is the first'}</dd>
        </div>
      </dl>
    </section>
  );
}
