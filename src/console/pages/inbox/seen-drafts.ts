/** The drafts that were last looked at, run by run, kept in this browser. */
import type { GodModeState } from '../../../generated/schemas.js';

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
  readonly #storage: Pick<Storage, 'getItem' | 'setItem'>;
  /** What was seen before each pause that was looked at since the page was loaded: looking again changes nothing. */
  readonly #before = new Map<string, Drafts | null>();

  constructor(storage: Pick<Storage, 'getItem' | 'setItem'>) {
    this.#storage = storage;
  }

  /** What was seen of a run before this pause, which is seen from now on; null: nothing. */
  look({ run_id: runId, seq, ...shown }: GodModeState): Drafts | null {
    const key = `${runId} ${seq}`;
    const known = this.#before.get(key);
    if (known !== undefined) return known;
    const kept = this.#kept();
    const before = kept.find((each) => each.runId === runId)?.drafts ?? null;
    this.#before.set(key, before);
    this.#keep([...kept.filter((each) => each.runId !== runId), { runId, drafts: draftsOf(shown) }]);
    return before;
  }

  #kept(): readonly Seen[] {
    try {
      const kept: unknown = JSON.parse(this.#storage.getItem(KEPT_AS) ?? '[]');
      return Array.isArray(kept) ? kept.filter(isSeen) : [];
    } catch {
      return [];
    }
  }

  #keep(all: readonly Seen[]): void {
    let chars = 0;
    const kept = all
      .slice(-MAX_RUNS)
      .reverse()
      .filter((each) => (chars += JSON.stringify(each).length) <= MAX_CHARS)
      .reverse();
    try {
      this.#storage.setItem(KEPT_AS, JSON.stringify(kept));
    } catch {
      // Storage that is full, or refused, remembers nothing.
    }
  }
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
