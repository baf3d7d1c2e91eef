/** The store of a watched run, which notifies its watchers. */
import { createStore } from '@xstate/store';
import { Broadcast } from '../system/async/broadcast.js';
import type { RunState } from '../run/state.js';

/** A watcher, whose functions must not throw. */
export interface Watcher {
  readonly onState: (run: RunState) => void;
  /** Called when the run is found corrupt, after which its state must not be shown. */
  readonly onCorrupt?: () => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/** A notification to the watchers of a run. */
type Notification = { readonly kind: 'state'; readonly run: RunState } | { readonly kind: 'corrupt' };

export interface RunStore {
  recorded(run: RunState): void;
  /** The run was found corrupt. */
  notifyCorrupt(): void;
  readonly watchers: Broadcast<Notification>;
}

export function runStore(first: RunState): RunStore {
  const watchers = new Broadcast<Notification>();
  const store = createStore({
    context: { run: first },
    on: { recorded: (_, { run }: { run: RunState }) => ({ run }) },
  });
  store.subscribe(({ context: { run } }) => watchers.deliver({ kind: 'state', run }));
  return {
    recorded: (run) => store.send({ type: 'recorded', run }),
    notifyCorrupt: () => watchers.deliver({ kind: 'corrupt' }),
    watchers,
  };
}
