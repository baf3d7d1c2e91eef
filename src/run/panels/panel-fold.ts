/** Folds the events of panels, ranks and juries into the state of a run. */
import type { NodeCompletedData, PanelClosedData, QuorumReachedData } from '../../generated/schemas.js';
import { emptySeat, membersOf, openPanel, outcomeOf } from './panels.js';
import { followRoute } from '../frontier/node-route.js';
import type { FrontierNode, RunProgress, RunState } from '../state.js';

/** The steps of all members of a node, of which the first one has started; the others start in the same append. */
export function seatsOf({ plan }: RunState, first: FrontierNode): readonly FrontierNode[] {
  const { step: panelStep } = first;
  return membersOf(plan, first).map(({ id: member }, index) => {
    const seat = emptySeat(member, panelStep);
    if (index === 0) return { ...first, seat };
    const waiting = { attempt: 0, model: null, tools: [], orderShown: [], active: false };
    return { ...first, ...waiting, step: panelStep + index, seat };
  });
}

/** Puts a member's answer into its seat. The panel stays open. */
export function memberAnswered(progress: RunProgress, { step, output }: NodeCompletedData): Partial<RunProgress> {
  return {
    frontier: progress.frontier.map((each) => {
      return each.step === step && each.seat !== null
        ? { ...each, active: false, seat: { ...each.seat, output } }
        : each;
    }),
  };
}

/** Puts the end of the grace into the seats of a panel. */
export function quorumReached(progress: RunProgress, { panelStep, until }: QuorumReachedData): Partial<RunProgress> {
  return {
    frontier: progress.frontier.map((each) => {
      return each.seat?.panelStep === panelStep ? { ...each, seat: { ...each.seat, until } } : each;
    }),
  };
}

/** The members of a closed panel leave the frontier, and the step of the node with its branch takes their place. */
export function panelClosed(state: RunState, { node, panelStep, route }: PanelClosedData): Partial<RunState> {
  const { progress } = state;
  const panel = openPanel(state, panelStep);
  const [first] = panel?.steps ?? [];
  if (panel === null || first === undefined) return state;
  const { branch, scores, iterationCount, juries, answered } = outcomeOf(state, panel);
  const routed = followRoute(state, { node, step: panelStep, branch, next: route.next });
  const closed: FrontierNode = { ...first, step: panelStep, active: false, branch, orderShown: [], seat: null };
  const frontier = progress.frontier.flatMap((each) => {
    if (each.seat?.panelStep !== panelStep) return [each];
    return each.seat.member === first.seat.member ? [closed] : [];
  });
  const closedPanels = progress.closedPanels + (state.plan.node(node).role === 'panel' ? 1 : 0);
  const unanswered = progress.unanswered + panel.steps.length - answered.length;
  const shown = progress.frontier[0]?.seat?.panelStep === panelStep ? branch : progress.shown;
  return {
    ownership: { ...state.ownership, takeovers: 0 },
    progress: {
      ...progress,
      ...routed,
      scores,
      iterationCount,
      juries,
      closedPanels,
      unanswered,
      frontier,
      shown,
    },
  };
}
