/** What the members of panels, ranks, judges and juries have answered: a fold of a run's events with the fold of the run. */
import type {
  DeliberationRecord,
  JudgedAnalysis,
  JuryRecord,
  MemberAnswer,
  PanelClosedData,
  RankingResult,
  ReviewerRanking,
} from '../generated/schemas.js';
import { membersOf } from '../run/panels/members.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import type { OpenPanel, SeatedStep } from '../run/panels/panels.js';
import { membersBehind, openPanel, openPanels } from '../run/panels/panels.js';
import type { RunState } from '../run/state.js';
import { isFinished } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { InheritedAnswer } from '../run/history/fold.js';
import { inheritedAnswers } from '../run/history/fold.js';
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
  const parts = [...(await parentsOf(own, folded, partOf)).toReversed(), own];
  // A panel that was under way at the fork point closes in the fork.
  const panels = parts.flatMap((part) =>
    part === own ? [...part.closed, ...part.open].toSorted(byStep) : part.closed,
  );
  return {
    answers: [...(parts[0]?.inherited ?? []), ...panels.flatMap(answersOf)],
    rankings: panels.flatMap(rankingsOf),
    results: panels.flatMap(resultOf),
    analyses: parts.flatMap(({ analyses }) => analyses),
    juries: panels.flatMap(juryOf),
  };
}

/** What a run's own events hold of a deliberation. */
interface Part extends Generation {
  /** Answers from before a fork. */
  readonly inherited: readonly MemberAnswer[];
  /** In the order of their steps. */
  readonly closed: readonly RecordedPanel[];
  readonly open: readonly RecordedPanel[];
  readonly analyses: readonly JudgedAnalysis[];
}

async function partOf(runId: string, events: AsyncIterable<RunEvent>): Promise<Part | null> {
  let run: RunState | null = null;
  let inherited: readonly MemberAnswer[] = [];
  const closed: RecordedPanel[] = [];
  const analyses: JudgedAnalysis[] = [];
  for await (const recorded of events) {
    const event = upcast(recorded);
    const before = run;
    run = foldNext(runId, before, event);
    if (before === null) inherited = inheritedAnswers(run).map(answeredBefore);
    else if (event.type === 'PanelClosed') closed.push(...closedPanel(before, event.data));
    else if (event.type === 'NodeCompleted') analyses.push(...analysisIn(event, before));
  }
  if (run === null) return null;
  const { plan } = run;
  const isOver = isFinished(run);
  const open = openPanels(run).map((panel): RecordedPanel => ({ plan, panel, end: null, isOver }));
  const { parent } = run.request;
  return { parent, inherited, closed: closed.toSorted(byStep), open, analyses, headHash: run.head.hash };
}

function byStep(a: RecordedPanel, b: RecordedPanel): number {
  return a.panel.panelStep - b.panel.panelStep;
}

/** A panel, rank or jury, with the event that closed it, or null if it is under way or the run ended before. */
interface RecordedPanel extends Pick<RunState, 'plan'> {
  readonly panel: OpenPanel;
  readonly end: PanelClosedData | null;
  /** Whether it can get no further answers: it has closed, or the run has ended. */
  readonly isOver: boolean;
}

function closedPanel(before: RunState, end: PanelClosedData): readonly RecordedPanel[] {
  const panel = openPanel(before, end.panelStep);
  return panel === null ? [] : [{ plan: before.plan, panel, end, isOver: true }];
}

function analysisIn(
  { data: { step, node, output } }: Extract<RunEvent, { type: 'NodeCompleted' }>,
  { progress }: RunState,
): readonly JudgedAnalysis[] {
  if (!('analysis' in output)) return [];
  const { model = null, orderShown = [] } = progress.frontier.find((each) => each.step === step) ?? {};
  return [{ step, node, model, order_shown: [...orderShown], analysis: output.analysis }];
}

function answersOf({ plan, panel, isOver }: RecordedPanel): readonly MemberAnswer[] {
  const { node, panelStep } = panel;
  if (plan.node(node).role !== 'panel') return [];
  const labels = new Map(membersOf(plan, panel).map(({ id, label }) => [id, label]));
  return panel.steps.flatMap(({ seat, model }): readonly MemberAnswer[] => {
    const { member, output, error } = seat;
    const of = { step: panelStep, node, member, label: labels.get(member) ?? member, model };
    if (output !== null && 'answer' in output) {
      return [{ ...of, text: output.answer, status: 'answered', error: null }];
    }
    if (error !== null) return [{ ...of, text: null, status: 'failed', error }];
    return isOver ? [{ ...of, text: null, status: 'discarded', error: null }] : [];
  });
}

function rankingsOf({ panel }: RecordedPanel): readonly ReviewerRanking[] {
  return panel.steps.flatMap(({ seat, model, orderShown }) => {
    const { member: reviewer, output } = seat;
    if (output === null || !('ranking' in output)) return [];
    const ranking = [...membersBehind(output.ranking, orderShown)];
    const of = { step: panel.panelStep, node: panel.node, reviewer };
    return [{ ...of, model, order_shown: [...orderShown], ranking, comment: output.comment }];
  });
}

function resultOf({ panel: { node, panelStep: step }, end }: RecordedPanel): readonly RankingResult[] {
  const result = end?.result ?? null;
  if (result === null || !('points' in result)) return [];
  return [{ step, node, points: result.points, agreement: result.agreement }];
}

function juryOf({ plan, panel, end }: RecordedPanel): readonly JuryRecord[] {
  const { node, panelStep: step, steps } = panel;
  const { role, aggregate = 'median' } = plan.node(node);
  const scores = steps.flatMap(scoreOf);
  if (role !== 'critic' || (scores.length === 0 && end === null)) return [];
  const result = end?.result ?? null;
  const { score = null, agreement = null } = result !== null && 'score' in result ? result : {};
  return [{ step, node, scores, aggregate, score, agreement }];
}

function scoreOf({ seat: { member, output }, model }: SeatedStep): JuryRecord['scores'] {
  if (output === null || !('score' in output)) return [];
  return [{ member, model, score: output.score, feedback: output.feedback }];
}

function answeredBefore({ node, panelStep: step, answer }: InheritedAnswer): MemberAnswer {
  const { member, label, model, text } = answer;
  return { step, node, member, label, model, text, status: 'answered', error: null };
}
