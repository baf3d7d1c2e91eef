/**
 * The beginning of the genealogy of a fork: the drafts, feedback and scores from the parent or from the request of the
 * fork.
 */
import type { GenealogyDraft } from '../generated/schemas.js';
import type { Branch } from '../run/frontier/branch.js';
import { forkSource } from '../run/fork.js';
import type { RunState } from '../run/state.js';
import { inheritedAnswers } from '../run/history/fold.js';
import type { EventRef, Provenance } from './provenance.js';
import { answerFrom, distinct, sourceOf } from './provenance.js';

/** Source of an override at the fork in old records, which do not state the number of steps before it. */
const AT_FORK_BEFORE = 'g0';

/**
 * Adds the drafts, feedback and scores of a fork's branches, under the sources that they have in the parent.
 *
 * @param changed fields of the override in the request of the fork; empty in records without them
 */
export function addInherited(
  provenance: Provenance,
  request: EventRef,
  { run, changed }: { readonly run: RunState; readonly changed: readonly string[] },
): void {
  const isAtFork = (from: string | null): boolean =>
    from !== null && [forkSource(run), AT_FORK_BEFORE].includes(sourceOf(from));
  const kindOf = (from: string | null, ...fields: readonly string[]): 'human' | 'inherited' =>
    isAtFork(from) && fields.some((field) => changed.includes(field)) ? 'human' : 'inherited';
  const branches = [...run.progress.frontier, ...run.progress.arrivals, ...run.progress.ended].map(
    ({ branch }) => branch,
  );
  const iteration = run.progress.iterationCount;
  for (const { draft, draftFrom, draftBy } of eachOnce(branches, ({ draftFrom: from }) => from)) {
    if (draft === null) continue;
    const step = stepIn(draftFrom);
    const [kind, node] = [kindOf(draftFrom, 'current_draft', 'branches'), step === null ? null : draftBy];
    const parents = { drafts: [], feedback: [] };
    provenance.addDraft(request, draftFrom, { kind, node, step, parents, iteration, text: draft });
  }
  addAnswers(provenance, request, run);
  const feedback = branches.flatMap((branch) => branch.feedback);
  for (const source of distinct(feedback.map(({ from }) => sourceOf(from)))) {
    const given = eachOnce(feedback, ({ from }) => (sourceOf(from) === source ? from : null));
    const texts = given.map(({ text }) => text);
    const kind = kindOf(source, 'feedback_history');
    provenance.addFeedback(request, source, { kind, node: null, draft: null, texts });
  }
  for (const branch of eachOnce(branches, ({ scoreFrom }) => scoreFrom)) {
    const { score, scoreBy, scoreFrom, verdict } = branch;
    const node = stepIn(scoreFrom) === null ? null : scoreBy;
    const kind = kindOf(scoreFrom, 'critic_score');
    const drafts = kind === 'human' ? distinct(branches.map((each) => provenance.draftOf(each))) : [];
    provenance.addScore({ ...request, node, kind, score, verdict, drafts, feedback: null, iteration });
  }
  addScores(provenance, request, run);
}

/** Adds the answers of panels under way, and those of closed panels that the branches still hold. */
function addAnswers(provenance: Provenance, request: EventRef, run: RunState): void {
  const { frontier, iterationCount: iteration } = run.progress;
  const given = frontier.flatMap(({ node, step, seat }) => {
    if (seat === null || seat.output === null || !('answer' in seat.output)) return [];
    const { member, panelStep, output } = seat;
    return [{ node, panelStep, step, answer: { member, text: output.answer } }];
  });
  for (const { node, panelStep, step, answer } of [...inheritedAnswers(run), ...given]) {
    const { member, text } = answer;
    const draft = { kind: 'inherited' as const, node, member, step, iteration, text };
    const parents = { drafts: [], feedback: [] };
    provenance.addDraft(request, answerFrom(panelStep, member), { ...draft, parents });
  }
}

/** Adds the scores that members of juries under way have given. */
function addScores(provenance: Provenance, request: EventRef, { progress }: RunState): void {
  for (const { node, seat } of progress.frontier) {
    if (seat === null || seat.output === null || !('score' in seat.output)) continue;
    const given = {
      node,
      member: seat.member,
      score: seat.output.score,
      verdict: null,
      iteration: progress.iterationCount,
    };
    provenance.addScore({ ...request, kind: 'inherited', ...given, drafts: [], feedback: null });
  }
}

function stepIn(from: string | null): GenealogyDraft['step'] {
  const step = Number(from ?? Number.NaN);
  return Number.isInteger(step) ? step : null;
}

/** The first item of each key; omits items without a key. */
function eachOnce<T extends Branch | Branch['feedback'][number]>(
  items: readonly T[],
  keyOf: (item: T) => string | null,
): readonly T[] {
  const seen = new Set<string | null>([null]);
  return items.filter((item) => {
    const key = keyOf(item);
    return !seen.has(key) && seen.add(key);
  });
}
