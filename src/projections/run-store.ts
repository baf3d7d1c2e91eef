/** A watched run as a small store, which notifies its watchers in slices. */
import { createStore } from '@xstate/store';
import { Broadcast } from '../system/async/broadcast.js';
import type { Slices } from '../system/async/slices.js';
import type { RunState } from '../run/state.js';

/** Most states that a watcher is sent at once while there are many watchers: those of few events, with a draft or two. */
const STATES_AT_ONCE = 16;

/** Its functions must not throw. */
export interface Watcher {
  /** @param hasMore whether the next state comes right after it; absent: it does not */
  readonly onState: (run: RunState, hasMore?: boolean) => void;
  /** Called when the run is found corrupt: nothing more of it should be shown. */
  readonly onCorrupt?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/** A notification to the watchers of a run. */
type News = { readonly kind: 'state'; readonly run: RunState } | { readonly kind: 'damage' };

export interface RunStore {
  recorded(run: RunState): void;
  /** The run was found corrupt. */
  refused(): void;
  readonly watchers: Broadcast<News>;
}

export function runStore(first: RunState, slices: Slices): RunStore {
  const watchers = new Broadcast<News>(slices, { atOnce: STATES_AT_ONCE });
  const store = createStore({
    context: { run: first },
    on: { recorded: (_, { run }: { run: RunState }) => ({ run }) },
  });
  store.subscribe(({ context: { run } }) => watchers.tell({ kind: 'state', run }));
  return {
    recorded: (run) => store.send({ type: 'recorded', run }),
    refused: () => watchers.tell({ kind: 'damage' }),
    watchers,
  };
}
