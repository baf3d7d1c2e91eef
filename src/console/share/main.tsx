/** Shows a run from a shared file, which holds its events. Needs no service and no network. */
import { signal } from '@preact/signals';
import { render } from 'preact';
import type { RunPlace, RunSource } from '../pages/run/source.js';
import { RunStore } from '../pages/run/store.js';
import { RunEnd, RunView } from '../pages/run/view.js';
import { Status } from '../ui/controls.js';
import { dateTimeText } from '../ui/time.js';
import type { SharedRun } from './shared-run.js';
import { SHARED_RUN, sharedRunIn } from './shared-run.js';

const [root, element] = [document.getElementById('app'), document.getElementById(SHARED_RUN)];
if (root === null || element === null) throw new Error('This file does not contain a run');
const run = sharedRunIn(element.textContent);
const store = new RunStore({
  source: sourceOf(run),
  place: hashPlace(),
  clock: signal(Date.parse(run.sharedAt)),
  frame: (show) => void window.requestAnimationFrame(show),
});
render(<SharedPage />, root);
store.start();

function SharedPage() {
  const { value: summary } = store.summary;
  return (
    <main id="page" class="run">
      <div class="run-head">
        <div class="row">
          {summary !== null && <Status status={summary.now.status} error={summary.now.error} />}
          <span class="muted small">{summary?.council ?? 'Built-in council'}</span>
          <span class="muted small">shared {dateTimeText(run.sharedAt)}</span>
          {run.proof !== undefined && (
            <span class="muted small">
              in the ledger at {run.proof.index}, checkpoint of {dateTimeText(run.proof.checkpointAt)}
            </span>
          )}
        </div>
        <h1>{summary?.topic ?? 'A run'}</h1>
      </div>
      <RunEnd store={store} />
      {store.head.value >= 0 && <RunView store={store} />}
    </main>
  );
}

function sourceOf({ id, events, documents = {}, cited = [] }: SharedRun): RunSource {
  return {
    id,
    isLive: false,
    cited: () => Promise.resolve(cited),
    documentNames: () => Promise.resolve(new Map(Object.entries(documents))),
    async *events(from) {
      yield* events.slice(from + 1);
    },
  };
}

/** Keeps the view in the URL fragment: browsers allow a file no other change of its URL. */
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
