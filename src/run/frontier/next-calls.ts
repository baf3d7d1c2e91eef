/** The calls to models that follow when a human approves a pause unchanged: what each sends, and what it may cost. */
import type { Reservation } from '../../generated/schemas.js';
import { neededByStep, reservationFor } from '../budget/spending.js';
import { notYetBegun } from './start.js';
import { stoppedSteps } from './frontier.js';
import { membersOf } from '../panels/panels.js';
import type { AttemptCall, AttemptStart } from './node-start.js';
import { attemptsOfNodes, callOfAttempt, reservationOfCall } from './node-start.js';
import type { DecisionContext } from '../pending-events.js';
import type { RunState } from '../state.js';
import { openPauseOf } from '../state.js';

/** The first call of an attempt that starts when its pause is approved. */
export interface NextAttempt extends Pick<AttemptStart, 'node' | 'step' | 'attempt'>, AttemptCall {
  /** The member of a panel, rank or jury, or null if the node itself is called. */
  readonly member: { readonly id: string; readonly label: string } | null;
  /** The most that the call may cost; after a stop at the budget also the calls before it, which are repeated. */
  readonly reserved: Reservation;
}

/** In the order of the waiting nodes; empty if the run does not wait for a human. */
export function nextAttempts(run: RunState, context: DecisionContext): readonly NextAttempt[] {
  const pause = openPauseOf(run);
  if (pause === null) return [];
  const again = stoppedSteps(run).map((at): AttemptStart => ({ ...at, attempt: at.attempt + 1 }));
  const first = attemptsOfNodes(run, notYetBegun(run, pause.nextNodes));
  const calls = [...again, ...first].filter(({ node }) => run.plan.node(node).role !== 'council');
  return calls.map((attempt) => {
    const call = callOfAttempt(run, attempt, context);
    const reserved = reservationOfCall(call, context);
    const needed =
      run.spending === null ? reserved : reservationFor(neededByStep(run.spending, attempt.step, reserved));
    const { node, step, attempt: number } = attempt;
    return { node, step, attempt: number, member: memberAt(run, attempt), reserved: needed, ...call };
  });
}

function memberAt(run: RunState, { node, branch, seat }: AttemptStart): NextAttempt['member'] {
  const member = seat === null ? undefined : membersOf(run.plan, { node, branch }).find(({ id }) => id === seat.member);
  return member === undefined ? null : { id: member.id, label: member.label };
}
