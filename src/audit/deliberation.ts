/** What the members of panels, ranks, judges and juries have answered: a view of the history of a run. */
import type {
  DeliberationRecord,
  JudgedAnalysis,
  JuryRecord,
  MemberAnswer,
  RankingResult,
  ReviewerRanking,
} from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import { HistoryFold } from '../run/history/fold.js';
import type { MemberStep, PanelSteps, RunHistory, Step, Work } from '../run/history/history.js';
import { membersBehind } from '../run/panels/panels.js';
import type { RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { FoldEvents, Generation } from './parents.js';
import { parentsOf } from './parents.js';

/**
 * The deliberation of a run, or null if there are no events. A fork's deliberation begins with what its parent had recorded
 * before the fork point. If the parent cannot be read or is another, it begins with the answers in the record of the fork:
 * those of panels under way at the fork point, and those that later nodes can see.
 *
 * @throws {RunCorrupt} an event of the run is invalid
 */
export async function deliberationOf(runId: string, folded: FoldEvents): Promise<DeliberationRecord | null> {
  const own = await folded(runId, (events) => partOf(runId, events));
  if (own === null) return null;
  // 1. The parents, the oldest first. A panel that was under way at the fork point closes in the fork.
  const parts = [...(await parentsOf(own, folded, partOf)).toReversed(), own];
  const panels = parts.flatMap((part) => panelsIn(part).filter(({ closed }) => part === own || closed !== null));
  // 2. The answers that only the first record holds.
  const kept = (parts[0]?.history.keptAnswers ?? []).flatMap(({ node, panelStep: step, answers }) =>
    answers.map((answer): MemberAnswer => ({ step, node, ...answer, status: 'answered', error: null })),
  );
  return {
    answers: [...kept, ...panels.flatMap(answersOf)],
    rankings: panels.flatMap(rankingsOf),
    results: panels.flatMap(resultOf),
    analyses: parts.flatMap(analysesIn),
    juries: panels.flatMap(juryOf),
  };
}

/** A run with its history. */
interface RunWithHistory extends Generation {
  readonly history: RunHistory;
}

async function partOf(runId: string, events: AsyncIterable<RunEvent>): Promise<RunWithHistory | null> {
  let run: RunState | null = null;
  let fold: HistoryFold | null = null;
  for await (const recorded of events) {
    const event = upcast(recorded);
    const before = run;
    run = foldNext(runId, before, event);
    if (before !== null) fold?.add(event, { before, after: run });
    else if (event.type === 'RunRequested') fold = new HistoryFold(event, run, (output) => !('draft' in output));
  }
  return run === null || fold === null
    ? null
    : { parent: run.request.parent, headHash: run.head.hash, history: fold.history };
}

/** An execution of a panel, rank or jury. */
interface Panel extends Pick<Step, 'step' | 'node'>, Pick<RunHistory, 'plan' | 'end'>, PanelSteps {}

function panelsIn({ history: { plan, end, steps } }: RunWithHistory): readonly Panel[] {
  return steps.flatMap(({ step, node, panel }) => (panel === null ? [] : [{ step, node, plan, end, ...panel }]));
}

function answersOf({ step, node, plan, end, members, closed }: Panel): readonly MemberAnswer[] {
  if (plan.node(node).role !== 'panel') return [];
  return members.flatMap((each): readonly MemberAnswer[] => {
    const { member, label, output } = each;
    const of = { step, node, member, label, model: askedOf(each).model };
    if (output !== null && 'answer' in output.value) {
      return [{ ...of, text: output.value.answer, status: 'answered', error: null }];
    }
    const error = errorOf(each);
    if (error !== null) return [{ ...of, text: null, status: 'failed', error }];
    return closed !== null || end !== null ? [{ ...of, text: null, status: 'discarded', error: null }] : [];
  });
}

function rankingsOf({ step, node, members }: Panel): readonly ReviewerRanking[] {
  return members.flatMap((each) => {
    const { member: reviewer, output } = each;
    if (output === null || !('ranking' in output.value)) return [];
    const { model, orderShown } = askedOf(each);
    const ranking = [...membersBehind(output.value.ranking, orderShown)];
    return [{ step, node, reviewer, model, order_shown: [...orderShown], ranking, comment: output.value.comment }];
  });
}

function resultOf({ step, node, closed }: Panel): readonly RankingResult[] {
  const result = closed?.result ?? null;
  if (result === null || !('points' in result)) return [];
  return [{ step, node, points: result.points, agreement: result.agreement }];
}

/** The analyses of judges, in the order in which they were given. */
function analysesIn({ history }: RunWithHistory): readonly JudgedAnalysis[] {
  const analyses = history.steps.flatMap((each) => {
    const { step, node, output } = each;
    if (output === null || !('analysis' in output.value)) return [];
    const { model, orderShown } = askedOf(each);
    return [{ seq: output.seq, step, node, model, order_shown: [...orderShown], analysis: output.value.analysis }];
  });
  return analyses.toSorted((a, b) => a.seq - b.seq).map(({ seq: _, ...analysis }) => analysis);
}

function juryOf({ step, node, plan, members, closed }: Panel): readonly JuryRecord[] {
  const { role, aggregate = 'median' } = plan.node(node);
  const scores = members.flatMap((each) => {
    const { member, output } = each;
    if (output === null || !('score' in output.value)) return [];
    const { score, feedback } = output.value;
    return [{ member, model: askedOf(each).model, score, feedback }];
  });
  if (role !== 'critic' || (scores.length === 0 && closed === null)) return [];
  const result = closed?.result ?? null;
  const { score = null, agreement = null } = result !== null && 'score' in result ? result : {};
  return [{ step, node, scores, aggregate, score, agreement }];
}

/** The model that was asked last, and the order of the answers that it saw. */
function askedOf({ attempts, inherited = null }: Work & Partial<Pick<MemberStep, 'inherited'>>) {
  const { model, orderShown } = attempts.at(-1) ?? inherited ?? { model: null, orderShown: [] };
  return { model, orderShown };
}

/** Why a member has failed, or null if it has not. */
function errorOf({ attempts, inherited }: MemberStep): string | null {
  const ended = attempts.at(-1)?.ended ?? null;
  if (ended?.how === 'failed' && ended.failure.final === true) return ended.failure.message;
  return inherited?.error ?? null;
}
