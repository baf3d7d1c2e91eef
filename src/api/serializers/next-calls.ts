/** Serializer of the calls to models that follow a pause. */
import { userMessage } from '../../models/material.js';
import type { NextCalls, Reservation } from '../../generated/schemas.js';
import type { RunSummary } from '../../projections/run-summary.js';
import type { NextAttempt } from '../../run/frontier/next-calls.js';
import type { RunPause, RunState } from '../../run/state.js';
import { sumOfDollars } from '../../system/dollars.js';
import { budgetOfRun, runUsage } from './runs.js';

export interface NextView extends Pick<RunSummary, 'usage'> {
  readonly run: RunState;
  /** The open pause, or null. */
  readonly pause: RunPause | null;
  readonly attempts: readonly NextAttempt[];
  /** As in `PauseAccess`. */
  readonly needed: Reservation | null;
}

export function nextCalls({ run, pause, attempts, needed, usage }: NextView): NextCalls {
  const nodes = [...new Set(attempts.map(({ node }) => node))];
  return {
    run_id: run.runId,
    paused: pause !== null,
    seq: pause?.seq ?? run.head.seq,
    ...(pause?.reason === 'budget' && { pause_reason: pause.reason }),
    nodes: nodes.map((id) => {
      const { label, role } = run.plan.node(id);
      return { node: id, label, role, calls: attempts.filter(({ node }) => node === id).map(nextCall) };
    }),
    reserved: sumOf(attempts.map(({ reserved }) => reserved)),
    usage: usage === null ? null : runUsage(usage),
    ...(run.spending !== null && { budget: budgetOfRun(run.spending, needed) }),
  };
}

function nextCall(next: NextAttempt): NextCalls['nodes'][number]['calls'][number] {
  const { member, step, attempt, model, tools, shown, assignment, reserved } = next;
  return {
    ...(member !== null && { member: member.id, member_label: member.label }),
    step,
    attempt,
    model,
    tools,
    ...(shown.orderShown.length > 0 && { order_shown: [...shown.orderShown] }),
    ...(shown.masked.length > 0 && { masked: [...shown.masked] }),
    system: assignment.rendered.system,
    prompt: userMessage(assignment.rendered),
    reserved: { tokens: reserved.tokens, usd: reserved.usd },
  };
}

function sumOf(amounts: readonly Reservation[]): Reservation {
  const known = amounts.flatMap(({ usd }) => usd ?? []);
  return {
    tokens: amounts.reduce((sum, { tokens }) => sum + tokens, 0),
    usd: known.length < amounts.length ? null : sumOfDollars(known),
  };
}
