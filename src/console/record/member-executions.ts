/** The members of panels, ranks and juries up to an event: what each of them does or has given. */
import type { NodeOutput } from '../../generated/schemas.js';
import { letterAt } from '../../council/deliberation/anonymity.js';
import type { PanelAnswers } from '../../run/panels/deliberation.js';
import { answersInOrder } from '../../run/panels/deliberation.js';
import { membersBehind } from '../../run/panels/panels.js';
import type { StepUsage } from './attempt-figures.js';
import { msBetween, usageOf, waitsAt } from './attempt-figures.js';
import type { Attempt, MemberStep, PanelEnd, PanelSteps, RunEnd } from '../../run/history/history.js';

/** `discarded`: the panel closed before it answered; `cancelled`: the run ended first. */
export type MemberState = 'waiting' | 'active' | 'answered' | 'failed' | 'discarded' | 'cancelled';

/** A member's part in one execution of a panel, rank or jury. */
export interface MemberExecution extends MemberStep {
  readonly state: MemberState;
  /** Model of its last attempt, or of its answer in the parent of a fork. */
  readonly model: string | null;
  readonly startedAt: string | null;
  /** From its first start to its end or to now, or null before it starts. */
  readonly durationMs: number | null;
  /** Why all its attempts failed, or null. */
  readonly error: string | null;
  readonly usage: StepUsage | null;
  /** The members whose answers it read, as shown to it: the first was Response A. */
  readonly orderShown: readonly string[];
}

export interface PanelExecution {
  /** In the order of the node. */
  readonly members: readonly MemberExecution[];
  readonly quorum: PanelSteps['quorum'];
  readonly closed: PanelEnd | null;
}

/** The panel's part of what decides its members' states. */
interface Scope {
  readonly end: RunEnd | null;
  /** The end of open attempts. */
  readonly until: string;
  readonly closed: PanelEnd | null;
}

/** @param until the end of open attempts */
export function panelExecutionOf(
  { members, quorum, closed }: PanelSteps,
  { end, until }: Pick<Scope, 'end' | 'until'>,
): PanelExecution {
  return { members: members.map((member) => memberExecutionOf(member, { end, until, closed })), quorum, closed };
}

function memberExecutionOf(member: MemberStep, scope: Scope): MemberExecution {
  const { attempts, inherited } = member;
  const { model, error, orderShown } = inherited ?? NOT_INHERITED;
  const [first, last] = [attempts[0], attempts.at(-1)];
  const state = memberStateOf(member, scope);
  return {
    ...member,
    ...{ state, usage: usageOf(attempts) },
    startedAt: first?.started.at ?? null,
    durationMs: first === undefined ? null : msBetween(first.started.at, endOf(last, state, scope)),
    model: last?.model ?? model,
    orderShown: last?.orderShown ?? orderShown,
    error: state === 'failed' ? (errorOf(last) ?? error) : null,
  };
}

const NOT_INHERITED = { model: null, error: null, orderShown: [] };

function endOf(last: Attempt | undefined, state: MemberState, { end, until }: Scope): string {
  if (state === 'waiting' || state === 'active') return until;
  return last?.ended?.at ?? end?.at ?? until;
}

function memberStateOf(
  { member, output, attempts, inherited }: MemberStep,
  { end, until, closed }: Scope,
): MemberState {
  if (output !== null) return 'answered';
  const last = attempts.at(-1);
  if (inherited !== null || hasFailed(last)) return 'failed';
  if (closed?.discarded.includes(member) === true) return 'discarded';
  if (end !== null) return 'cancelled';
  return last === undefined || last.ended !== null || waitsAt(last, until) ? 'waiting' : 'active';
}

/** Whether the panel, rank or jury continues without the member. */
function hasFailed(last: Attempt | undefined): boolean {
  return last?.ended?.how === 'failed' && last.ended.failure.final === true;
}

function errorOf(last: Attempt | undefined): string | null {
  return last?.ended?.how === 'failed' ? last.ended.failure.message : null;
}

/** A member as a reviewer: its order of the answers by member, best first, or null if it has given none. */
export function rankingOf({ output, orderShown }: MemberExecution): readonly string[] | null {
  const value: NodeOutput | null = output?.value ?? null;
  return value !== null && 'ranking' in value ? membersBehind(value.ranking, orderShown) : null;
}

/** The labels behind the letters of a prompt, by letter. */
export function labelsByLetter({
  orderShown: order,
  panelsRead: panels,
}: {
  readonly orderShown: readonly string[];
  readonly panelsRead: readonly PanelAnswers[];
}): ReadonlyMap<string, string> {
  return new Map(answersInOrder(panels, order).map(({ label }, index) => [letterAt(index), label]));
}
