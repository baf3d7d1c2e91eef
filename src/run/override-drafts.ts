/** Drafts that a human gives to branches about to run, and what they mean where those join others. */
import type { StateOverride } from '../generated/schemas.js';
import type { Branch, Fork } from './branch.js';
import { isOutstanding } from './run-fold.js';
import type { FrontNode, RunState } from './state.js';

/** Where a human overrides a run. */
export interface OverrideAt {
  /** What the human's words are known by (see humanSource). */
  readonly source: string;
  /** Nodes about to run, as they were shown. */
  readonly shown: readonly string[];
}

export interface DraftGiven {
  readonly draft: string | null;
  /** What it is known by: the decision, and for a single branch its node's place. */
  readonly from: string;
}

/** Drafts by the node that is to work on them. */
export type DraftsGiven = ReadonlyMap<string, DraftGiven>;

/** The drafts of an override: that of a single branch wins over the one for all. */
export function draftsGiven({ current_draft: forAll, branches = [] }: StateOverride, at: OverrideAt): DraftsGiven {
  const drafts = new Map<string, DraftGiven>();
  at.shown.forEach((node, place) => {
    const own = branches.find((each) => each.node === node);
    if (own !== undefined) drafts.set(node, { draft: own.current_draft, from: `${at.source}.${place}` });
    else if (forAll !== undefined) drafts.set(node, { draft: forAll, from: at.source });
  });
  return drafts;
}

/** A branch with the draft it is given, and the node that is to work on it; null: it keeps its own. */
interface Holding {
  readonly branch: Branch;
  readonly given: (DraftGiven & { readonly node: string }) | null;
}

/** The state with the drafts given to those of `nodes` that are about to run. */
export function overrideDrafts(run: RunState, drafts: DraftsGiven, nodes: readonly string[]): RunState {
  const underWay = run.front.filter((each) => isOutstanding(run, each)).map(({ node }) => node);
  const holding = ({ node, branch }: { readonly node: string; readonly branch: Branch }, isNext: boolean): Holding => {
    const given = isNext && nodes.includes(node) ? drafts.get(node) : undefined;
    return { branch, given: given === undefined ? null : { ...given, node } };
  };
  const ofFront = (each: FrontNode): Holding => holding(each, underWay.includes(each.node));
  const ofArrival = (each: RunState['arrivals'][number]): Holding => holding(each, !underWay.includes(each.node));
  const ground = commonGround([
    ...run.front.filter((each) => isOutstanding(run, each)).map(ofFront),
    ...run.arrivals.map(ofArrival),
    ...run.ended.map((each) => holding(each, false)),
  ]);
  const meets = (node: string): boolean => run.arrivals.filter((each) => each.node === node).length > 1;
  return {
    ...run,
    front: run.front.map((each) => ({ ...each, branch: withDraft(ofFront(each), { ground, isJoined: false }) })),
    arrivals: run.arrivals.map((each) => {
      return { ...each, branch: withDraft(ofArrival(each), { ground, isJoined: meets(each.node) }) };
    }),
  };
}

/**
 * The last node, if it was alone, holds the draft that its branch is given onward: it may be routed again, at once or,
 * in a fork, at the pause that the fork begins with.
 */
export function overrideLastDraft(run: RunState, drafts: DraftsGiven): RunState {
  const [last, ...others] = run.front;
  if (last === undefined || others.length > 0) return run;
  const target = run.arrivals.find((each) => each.from === last.step && drafts.has(each.node));
  const given = target === undefined ? undefined : drafts.get(target.node);
  if (target === undefined || given === undefined) return run;
  const branch = withDraft(
    { branch: last.branch, given: { ...given, node: target.node } },
    { ground: new Map(), isJoined: false },
  );
  return { ...run, front: [{ ...last, branch }] };
}

/**
 * Forks since which every branch has been given the same: that is what they have in common there from now on, as the
 * draft of before was. Where a branch keeps its own, the draft given counts as written since.
 */
function commonGround(branches: readonly Holding[]): ReadonlyMap<number, string> {
  const ground = new Map<number, string>();
  const differing = new Set<number>();
  for (const { branch, given } of branches) {
    for (const { step } of branch.forks) {
      const from = given?.from;
      if (from === undefined || (ground.has(step) && ground.get(step) !== from)) differing.add(step);
      else ground.set(step, from);
    }
  }
  for (const step of differing) ground.delete(step);
  return ground;
}

function withDraft(
  { branch, given }: Holding,
  { ground, isJoined }: { readonly ground: ReadonlyMap<number, string>; readonly isJoined: boolean },
): Branch {
  if (given === null) return branch;
  const forks = branch.forks.map((fork): Fork => ({ ...fork, draftFrom: ground.get(fork.step) ?? fork.draftFrom }));
  const isShared = branch.forks.at(-1)?.draftFrom === branch.draftFrom && forks.at(-1)?.draftFrom !== given.from;
  // An edit keeps its author; that of a joined draft, or of one that others share, is the node's that works on it.
  const draftBy = isJoined || isShared ? given.node : branch.draftBy;
  return { ...branch, draft: given.draft, draftFrom: given.from, draftBy, forks };
}
