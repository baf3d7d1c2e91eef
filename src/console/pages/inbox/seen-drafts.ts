/** The drafts that the user last saw, by run, in the browser's storage. */
import type { GodModeState } from '../../../generated/schemas.js';
import { store, readStoredList } from '../../shell/storage.js';

const KEPT_AS = 'council.seen';
/** Limits on stored runs and on the characters of all their drafts; the oldest are removed. */
const MAX_RUNS = 60;
const MAX_CHARS = 1_000_000;

/** Drafts by the node that waits with them, or by '' in a run with one branch. */
export type DraftsByNode = Readonly<Record<string, string>>;

interface Seen {
  readonly runId: string;
  readonly drafts: DraftsByNode;
}

export class SeenDrafts {
  /** What the user saw before each pause, since the page was loaded. */
  readonly #before = new Map<string, DraftsByNode | null>();

  /** Marks the drafts of a pause as seen. @returns the drafts seen at an earlier pause, or null if there are none */
  markSeen({ run_id: runId, seq, ...shown }: GodModeState): DraftsByNode | null {
    const key = `${runId} ${seq}`;
    const known = this.#before.get(key);
    if (known !== undefined) return known;
    const kept = readStoredList(KEPT_AS, isSeen);
    const before = kept.find((each) => each.runId === runId)?.drafts ?? null;
    this.#before.set(key, before);
    keepNewest([...kept.filter((each) => each.runId !== runId), { runId, drafts: draftsOf(shown) }]);
    return before;
  }
}

function keepNewest(all: readonly Seen[]): void {
  let chars = 0;
  const newest = all
    .slice(-MAX_RUNS)
    .reverse()
    .filter((each) => (chars += JSON.stringify(each).length) <= MAX_CHARS)
    .reverse();
  store(KEPT_AS, newest);
}

function draftsOf({
  current_state: shown,
  branches = [],
}: Pick<GodModeState, 'current_state' | 'branches'>): DraftsByNode {
  if (branches.length === 0) return { '': shown.current_draft ?? '' };
  return Object.fromEntries(branches.map(({ node, current_draft: draft }) => [node, draft ?? '']));
}

function isSeen(value: unknown): value is Seen {
  if (typeof value !== 'object' || value === null || !('runId' in value && 'drafts' in value)) return false;
  const { drafts } = value;
  return (
    typeof drafts === 'object' && drafts !== null && Object.values(drafts).every((each) => typeof each === 'string')
  );
}
