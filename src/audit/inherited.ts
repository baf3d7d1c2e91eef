/** What a fork begins with: the drafts, feedback and scores that its branches hold, known by where the parent had them from. */
import type { GenealogyDraft } from '../generated/schemas.js';
import type { Branch } from '../run/branch.js';
import { forkSource } from '../run/fork.js';
import type { RunState } from '../run/state.js';
import type { Ancestry, Moment } from './ancestry.js';
import { distinct, sourceOf } from './ancestry.js';

/** What an override at the fork itself was known by before the steps until then were told. */
const AT_FORK_BEFORE = 'g0';

/** @param changed fields of the override that the fork was asked for; of a fork that has not recorded it, none */
export function inherit(
  ancestry: Ancestry,
  moment: Moment,
  { run, changed }: { readonly run: RunState; readonly changed: readonly string[] },
): void {
  const isAtFork = (from: string | null): boolean =>
    from !== null && [forkSource(run), AT_FORK_BEFORE].includes(sourceOf(from));
  const kindOf = (from: string | null, ...fields: readonly string[]): 'human' | 'inherited' =>
    isAtFork(from) && fields.some((field) => changed.includes(field)) ? 'human' : 'inherited';
  const branches = [...run.front, ...run.arrivals, ...run.ended].map(({ branch }) => branch);
  const iteration = run.iterationCount;
  for (const { draft, draftFrom, draftBy } of eachOnce(branches, ({ draftFrom: from }) => from)) {
    if (draft === null) continue;
    const step = stepIn(draftFrom);
    const known = { node: step === null ? null : draftBy, step, parents: { drafts: [], feedback: [] } };
    ancestry.addDraft(moment, draftFrom, {
      kind: kindOf(draftFrom, 'current_draft', 'branches'),
      iteration,
      text: draft,
      ...known,
    });
  }
  const feedback = branches.flatMap((branch) => branch.feedback);
  for (const source of distinct(feedback.map(({ from }) => sourceOf(from)))) {
    const given = eachOnce(feedback, ({ from }) => (sourceOf(from) === source ? from : null));
    const texts = given.map(({ text }) => text);
    ancestry.addFeedback(moment, source, { kind: kindOf(source, 'feedback_history'), node: null, draft: null, texts });
  }
  for (const branch of eachOnce(branches, ({ scoreFrom }) => scoreFrom)) {
    const { score, scoreBy, scoreFrom, decision: verdict } = branch;
    const node = stepIn(scoreFrom) === null ? null : scoreBy;
    const kind = kindOf(scoreFrom, 'critic_score');
    const drafts = kind === 'human' ? distinct(branches.map((each) => ancestry.draftOf(each))) : [];
    ancestry.addScore({ ...moment, node, kind, score, verdict, drafts, feedback: null, iteration });
  }
}

function stepIn(from: string | null): GenealogyDraft['step'] {
  const step = Number(from ?? Number.NaN);
  return Number.isInteger(step) ? step : null;
}

/** Items with a key, each key once. */
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
