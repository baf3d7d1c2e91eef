/** A run in a file of its own: no service, no network; its events are in the file. */
import { signal } from '@preact/signals';
import { render } from 'preact';
import { usageWords } from '../record/words.js';
import type { RunPlace, RunSource } from '../pages/run/store.js';
import { RunStore } from '../pages/run/store.js';
import { Failed, RunView } from '../pages/run/view.js';
import { Status } from '../ui/controls.js';
import { exactly } from '../ui/time.js';
import type { SharedRun } from './shared-run.js';
import { SHARED_RUN, sharedRunIn } from './shared-run.js';

const [place, element] = [document.getElementById('app'), document.getElementById(SHARED_RUN)];
if (place === null || element === null) throw new Error('This file does not hold a run');
const run = sharedRunIn(element.textContent);
const store = new RunStore({
  source: sourceOf(run),
  place: hashPlace(),
  clock: signal(Date.parse(run.sharedAt)),
  frame: (show) => void window.requestAnimationFrame(show),
});
render(<SharedPage />, place);
store.start();

function SharedPage() {
  const { value: summary } = store.summary;
  return (
    <main id="page" class="wide run">
      <div class="page-head">
        <div class="stack">
          <div class="row">
            {summary !== null && <Status status={summary.now.status} />}
            <span class="muted small">{summary?.council ?? 'Built-in council'}</span>
            <span class="muted small">shared {exactly(run.sharedAt)}</span>
          </div>
          <h1>{summary?.topic ?? 'A run'}</h1>
          {summary !== null && (
            <p class="muted small">
              Started {exactly(summary.createdAt)}
              {summary.actor !== null && ` by ${summary.actor}`}, {usageWords(summary.now.usage)}, run {run.id}
            </p>
          )}
          <Failed store={store} />
        </div>
      </div>
      {store.head.value >= 0 && <RunView store={store} />}
    </main>
  );
}

function sourceOf({ id, events }: SharedRun): RunSource {
  return {
    id,
    isLive: false,
    async *events(from) {
      yield* events.slice(from + 1);
    },
  };
}

/** The moment and the view, kept behind the `#` of the address: of a file no other part may change. */
function hashPlace(): RunPlace {
  const read = (): URLSearchParams => new URLSearchParams(window.location.hash.slice(1));
  const query = signal(read());
  window.addEventListener('hashchange', () => (query.value = read()));
  return {
    query,
    setQuery(changes) {
      const next = new URLSearchParams(query.value);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === '') next.delete(name);
        else next.set(name, String(value));
      }
      query.value = next;
      window.location.replace(`#${next}`);
    },
  };
}
