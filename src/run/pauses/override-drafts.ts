/** The drafts that a human's override gives to branches. */
import type { StateOverride } from '../../generated/schemas.js';
import type { Branch, Fork } from '../frontier/branch.js';
import { isOpen } from '../fork-snapshot.js';
import { liveBranches } from './pause-view.js';
import type { Arrival, FrontierNode, RunState } from '../state.js';
import { withProgress } from '../state.js';

/** Where an override happens in its run. */
export interface OverrideAt {
  /** Source id of what the human gives (see humanSource). */
  readonly source: string;
  /** The nodes about to run, as shown to the human. */
  readonly shown: readonly string[];
}

/** A draft that a human gives. */
export interface GivenDraft {
  readonly draft: string | null;
  /** Source id of the decision; for a draft of a single branch, followed by the index of its node. */
  readonly from: string;
}

/** Drafts by the node that will work on them. */
export type GivenDrafts = ReadonlyMap<string, GivenDraft>;

/**
 * The drafts of an override. A draft for one branch takes precedence over the draft for all. A branch keeps its draft
 * if the override names it with that draft.
 */
export function givenDrafts(
  run: RunState,
  { current_draft: forAll, branches = [] }: StateOverride,
  at: OverrideAt,
): GivenDrafts {
  const drafts = new Map<string, GivenDraft>();
  const held = branches.length === 0 ? [] : liveBranches(run);
  const isKept = ({ node, current_draft: own }: NonNullable<StateOverride['branches']>[number]): boolean =>
    held.some((each) => each.node === node && each.draft === own);
  at.shown.forEach((node, place) => {
    const own = branches.find((each) => each.node === node);
    if (own !== undefined) {
      if (!isKept(own)) drafts.set(node, { draft: own.current_draft, from: `${at.source}.${place}` });
    } else if (forAll !== undefined) {
      drafts.set(node, { draft: forAll, from: at.source });
    }
  });
  return drafts;
}

/** A branch with the draft a human gives it and the node that will work on it, or null if it keeps its own. */
interface Redraft {
  readonly branch: Branch;
  readonly given: (GivenDraft & { readonly node: string }) | null;
}

/** The state in which those of `nodes` that are about to run have their given drafts. */
export function overrideDrafts(run: RunState, drafts: GivenDrafts, nodes: readonly string[]): RunState {
  const outstanding = run.progress.frontier.filter((each) => isOpen(run, each)).map(({ node }) => node);
  const redrafted = (
    { node, branch }: { readonly node: string; readonly branch: Branch },
    isNext: boolean,
  ): Redraft => {
    const given = isNext && nodes.includes(node) ? drafts.get(node) : undefined;
    return { branch, given: given === undefined ? null : { ...given, node } };
  };
  const ofFrontier = (each: FrontierNode): Redraft => redrafted(each, outstanding.includes(each.node));
  const ofArrival = (each: Arrival): Redraft => redrafted(each, !outstanding.includes(each.node));
  const shared = sharedDrafts([
    ...run.progress.frontier.filter((each) => isOpen(run, each)).map(ofFrontier),
    ...run.progress.arrivals.map(ofArrival),
    ...run.progress.ended.map((each) => redrafted(each, false)),
  ]);
  const meets = (node: string): boolean => run.progress.arrivals.filter((each) => each.node === node).length > 1;
  return withProgress(run, {
    frontier: run.progress.frontier.map((each) => ({
      ...each,
      branch: withDraft(ofFrontier(each), { shared, isJoined: false }),
    })),
    arrivals: run.progress.arrivals.map((each) => {
      return { ...each, branch: withDraft(ofArrival(each), { shared, isJoined: meets(each.node) }) };
    }),
  });
}

/**
 * The state in which the last node, if it was the only one of its frontier, also has the draft given to its successor:
 * the node may be routed again, at once or at the pause that a fork begins with.
 */
export function overrideLastDraft(run: RunState, drafts: GivenDrafts): RunState {
  const [last, ...others] = run.progress.frontier;
  if (last === undefined || others.length > 0) return run;
  const target = run.progress.arrivals.find((each) => each.from === last.step && drafts.has(each.node));
  const given = target === undefined ? undefined : drafts.get(target.node);
  if (target === undefined || given === undefined) return run;
  const branch = withDraft(
    { branch: last.branch, given: { ...given, node: target.node } },
    { shared: new Map(), isJoined: false },
  );
  return withProgress(run, { frontier: [{ ...last, branch }] });
}

/**
 * Draft sources by fork step, for forks whose branches all get the same draft: the branches then share it, as they shared
 * the draft before. If one branch keeps its own draft, a given draft counts as written after the fork.
 */
function sharedDrafts(branches: readonly Redraft[]): ReadonlyMap<number, string> {
  const shared = new Map<number, string>();
  const differing = new Set<number>();
  for (const { branch, given } of branches) {
    for (const { step } of branch.forks) {
      const from = given?.from;
      if (from === undefined || (shared.has(step) && shared.get(step) !== from)) differing.add(step);
      else shared.set(step, from);
    }
  }
  for (const step of differing) shared.delete(step);
  return shared;
}

function withDraft(
  { branch, given }: Redraft,
  { shared, isJoined }: { readonly shared: ReadonlyMap<number, string>; readonly isJoined: boolean },
): Branch {
  if (given === null) return branch;
  const forks = branch.forks.map((fork): Fork => ({ ...fork, draftFrom: shared.get(fork.step) ?? fork.draftFrom }));
  const isShared = branch.forks.at(-1)?.draftFrom === branch.draftFrom && forks.at(-1)?.draftFrom !== given.from;
  // An edited draft keeps its author. The author of a joined or shared draft becomes the node that the draft is for.
  const draftBy = isJoined || isShared ? given.node : branch.draftBy;
  return { ...branch, draft: given.draft, draftFrom: given.from, draftBy, forks };
}
