/** The drafts that were last looked at, run by run, kept in this browser. */
import type { GodModeState } from '../../../generated/schemas.js';
import { keep, keptList } from '../../shell/kept.js';

const KEPT_AS = 'council.seen';
/** Most runs that are remembered, and most characters of all their drafts together: the oldest are forgotten. */
const MAX_RUNS = 60;
const MAX_CHARS = 1_000_000;

/** Drafts by the node that waits with them; of a run with one branch by the empty text. */
export type Drafts = Readonly<Record<string, string>>;

interface Seen {
  readonly runId: string;
  readonly drafts: Drafts;
}

export class SeenDrafts {
  /** What was seen before each pause that was looked at since the page was loaded: looking again changes nothing. */
  readonly #before = new Map<string, Drafts | null>();

  /** What was seen of a run before this pause, which is seen from now on; null: nothing. */
  look({ run_id: runId, seq, ...shown }: GodModeState): Drafts | null {
    const key = `${runId} ${seq}`;
    const known = this.#before.get(key);
    if (known !== undefined) return known;
    const kept = keptList(KEPT_AS, isSeen);
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
  keep(KEPT_AS, newest);
}

function draftsOf({ current_state: shown, branches = [] }: Pick<GodModeState, 'current_state' | 'branches'>): Drafts {
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
