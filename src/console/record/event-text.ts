/** Texts for what happens in a run. A new kind of event, state or wait does not compile without a text here. */
import type { RunEvent } from '../../client/run-events.js';
import type { GateAction, StateOverride } from '../../generated/schemas.js';
import { spendingText } from '../../run/budget/budget-text.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import { BUDGET_ENDS, budgetEndOf, REJECTED } from '../../run/budget/end.js';
import { limitsText } from '../../run/cost-text.js';
import { attemptFailureText, nextActionText, runFailureText } from '../../run/failure-texts.js';
import { countOf, excerpt, shortCount } from './counts.js';
import { lengthText } from './durations.js';
import type { ExecutionState, MemberState } from './executions.js';
import type { Names } from './page-words.js';
import { inPageWords, withLabels } from './page-words.js';
import { withoutMarks } from './plain-draft.js';
import type { Waiting } from './timeline-lanes.js';

/** Names nodes and members by their ids, in the words of the API. */
export const IDS: Names = {
  node: (id) => id,
  member: (_node, id) => id,
  ranked: (id) => id,
  letter: (_step, letter) => letter,
};

/** An event as one sentence, or its type if this version does not know it. @param names default: {@link IDS} */
export function eventText(event: RunEvent, names: Names = IDS): string {
  switch (event.type) {
    case 'RunRequested':
      return requestText(event.data);
    case 'RunClaimed':
      return CLAIMS[event.data.reason];
    case 'RunReleased':
      return RELEASES[event.data.reason];
    case 'RunStarted':
      return 'The council started its work.';
    case 'RunResumed':
      return 'The run resumed.';
    case 'NodeStarted':
      return startText(event.data, names);
    case 'CallReserved':
      return `${names.node(event.data.node)} reserved ${shortCount(event.data.reserved.tokens)} tokens for its next call.`;
    case 'ToolCalled':
      return toolText(event.data, names);
    case 'ChildStarted':
      return `${names.node(event.data.node)} started run ${event.data.index}${titleText(event.data.title)}.`;
    case 'ChildEnded':
      return `Run ${event.data.index} of ${names.node(event.data.node)} ${event.data.status}.`;
    case 'NodeCompleted':
      return completionText(event.data, names);
    case 'NodeFailed':
      return attemptText(event.data, names);
    case 'QuorumReached':
      return quorumText(event, names);
    case 'PanelClosed':
      return closeText(event.data, names);
    case 'RunPaused':
      return pauseText(event.data, names);
    case 'VoteCast':
      return `${actorName(event.data.actor)} voted to ${event.data.action}${commentText(event.data.comment)}.`;
    case 'PauseEscalated':
      return `The deadline passed without a decision: now ${list(event.data.to)} may decide.`;
    case 'GateDecided':
      return decisionText(event, names);
    case 'RunCompleted':
      return endText(event.data);
    case 'RunFailed':
      return failureText(event.data, names);
    default:
      return unknownType(event satisfies never);
  }
}

function titleText(title: string | undefined): string {
  return title === undefined ? '' : `, "${title}"`;
}

type Data<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>['data'];

function requestText({ inputTopic, blueprintName, parent, actor, budget }: Data<'RunRequested'>): string {
  const council = blueprintName === null ? 'the built-in council' : `the council “${excerpt(blueprintName)}”`;
  const origin = parent === null ? '' : `, as a fork of run ${parent.runId} at event ${parent.at}`;
  const limits = budget === undefined ? '' : `, with a budget of ${limitsText(budget)}`;
  return `${actorName(actor)} started a run of ${council} on “${excerpt(inputTopic)}”${origin}${limits}.`;
}

function pauseText({ nextNodes, reason, budget }: Data<'RunPaused'>, names: Names): string {
  const head = `The run paused${reason === 'budget' ? ' for its budget' : ''} before ${list(nextNodes.map(names.node))}`;
  return budget === undefined ? `${head}.` : `${head}: ${spendingText(budget)}`;
}

const CLAIMS: Readonly<Record<Data<'RunClaimed'>['reason'], string>> = {
  started: 'An instance claimed the run.',
  resumed: 'An instance claimed the run to resume it.',
  recovered: 'Another instance claimed the run because the previous one was lost.',
  handover: 'Another instance claimed the run because the previous one stopped.',
};

const RELEASES: Readonly<Record<Data<'RunReleased'>['reason'], string>> = {
  paused: 'The instance released the run until somebody decides.',
  shutdown: 'The instance stopped and released the run.',
};

function startText({ node, member, attempt, model, delayMs }: Data<'NodeStarted'>, names: Names): string {
  const retry = attempt > 1 ? ` attempt ${attempt}` : '';
  const wait = delayMs > 0 ? ` after a wait of ${lengthText(delayMs)}` : '';
  return `${workerName({ node, member }, names)} started${retry} with ${model}${wait}.`;
}

function toolText({ node, tool, arguments: given, hits, error, durationMs }: Data<'ToolCalled'>, names: Names): string {
  const call = `${names.node(node)} called ${tool} for “${excerpt(argumentsText(given))}”`;
  if (error !== null) return `${call}, which failed: ${excerpt(error)}`;
  return `${call} and got ${countOf(hits.length, 'result')} in ${lengthText(durationMs)}.`;
}

/** The query of a tool call, or the model's text if it holds no arguments. */
export function argumentsText(given: Data<'ToolCalled'>['arguments']): string {
  return typeof given === 'string' ? given : String(given['query']);
}

function completionText({ step, node, member, output, route }: Data<'NodeCompleted'>, names: Names): string {
  const then = routeText(route, names);
  const who = workerName({ node, member }, names);
  if ('draft' in output) return `${who} wrote a draft of ${charactersOf(output.draft)}${then}.`;
  if ('answer' in output) return `${who} answered with ${charactersOf(output.answer)}${then}.`;
  if ('analysis' in output) return `${who} compared the answers${then}.`;
  if ('ranking' in output) {
    const letters = output.ranking.map((each) => names.letter(step, each)).join(', then ');
    return `${who} ranked the answers: ${letters}${then}${saidText(output.comment)}`;
  }
  return `${who} scored the draft ${output.score}${then}${saidText(output.feedback)}`;
}

function charactersOf(text: string): string {
  return countOf([...text].length, 'character');
}

/** Where a branch went, or empty of a member, whose panel has the route. */
function routeText(route: Data<'NodeCompleted'>['route'], names: Names): string {
  if (route === undefined) return '';
  return route.next.length === 0 ? ' and ended its branch' : ` and sent it to ${list(route.next.map(names.node))}`;
}

function saidText(text: string): string {
  return text.trim() === '' ? '.' : `: ${excerpt(withoutMarks(text))}`;
}

function quorumText({ at, data: { node, until } }: Extract<RunEvent, { type: 'QuorumReached' }>, names: Names): string {
  const leftMs = Date.parse(until) - Date.parse(at);
  return `The quorum of ${names.node(node)} has answered: the other members have ${lengthText(leftMs)} left.`;
}

function closeText({ node, answered, failed, discarded, result, route }: Data<'PanelClosed'>, names: Names): string {
  const namesOf = (members: readonly string[]): string => list(members.map((each) => names.member(node, each)));
  const left = [
    ...(failed.length === 0 ? [] : [`${namesOf(failed)} failed`]),
    ...(discarded.length === 0 ? [] : [`${namesOf(discarded)} came too late`]),
  ];
  const without = left.length === 0 ? '' : ` (${left.join(', ')})`;
  return `${names.node(node)} closed with ${resultText(result, namesOf(answered), names)}${without}${routeText(route, names)}.`;
}

function resultText(result: Data<'PanelClosed'>['result'], answered: string, names: Names): string {
  if (result === null) return `the answers of ${answered}`;
  if ('score' in result) return `score ${result.score} from ${answered}`;
  return `the order ${result.points.map(({ member }) => names.ranked(member)).join(', ')} from ${answered}`;
}

function attemptText(data: Data<'NodeFailed'>, names: Names): string {
  const { node, member, attempt, kind, message, final: isFinal } = data;
  const own = names === IDS ? (text: string): string => text : inPageWords;
  const what = attemptFailureText(kind)?.what ?? excerpt(message);
  const then = isFinal === true ? `${names.node(node)} continues without this member.` : own(nextActionText(data));
  return `Attempt ${attempt} of ${workerName({ node, member }, names)} failed: ${what} ${then}`;
}

function decisionText({ at, data }: Extract<RunEvent, { type: 'GateDecided' }>, names: Names): string {
  const { action, actor, comment = null, nextNodes, by, budget, review } = data;
  const subject = by === 'deadline' ? 'The deadline passed without a decision and' : actorName(actor);
  const changed = action === 'modify' ? changes(data.modifiedState) : '';
  const then = nextNodes.length === 0 ? '' : ` Next: ${list(nextNodes.map(names.node))}.`;
  const raised = budget === undefined ? '' : ` with a budget of ${limitsText(budget)}`;
  // The time is left out if the client sent no review, or one from after the decision.
  const readMs = review === undefined ? Number.NaN : Date.parse(at) - Date.parse(review.openedAt);
  const read = readMs >= 0 && review?.draftSha256 !== null ? ` after ${lengthText(readMs)}` : '';
  const of = read === '' || action === 'modify' ? 'the run' : 'this draft';
  return `${subject} ${DECIDED[action]} ${of}${read}${raised}${changed}${commentText(comment)}.${then}`;
}

const DECIDED: Readonly<Record<GateAction, string>> = {
  approve: 'approved',
  reject: 'rejected',
  modify: 'continued',
};

function changes(override: StateOverride | null): string {
  const fields = Object.keys(override ?? {}).map((field) => field.replaceAll('_', ' '));
  return fields.length === 0 ? ' unchanged' : ` with ${list(fields)} changed`;
}

/** That a run completed, and with what. */
function endText({ criticScore, iterationCount, finalDraft, endedBy }: Data<'RunCompleted'>): string {
  const score = criticScore === null ? '' : ` with score ${criticScore}`;
  const drafts = iterationCount === null ? '' : ` after ${countOf(iterationCount, 'draft')}`;
  const what = `${drafts}${score}${finalDraft === null ? ', without a draft' : ''}`;
  if (endedBy === 'budget') return `The council stopped at the budget${what}; later nodes did not run.`;
  return `The council finished${what}.`;
}

/** Why a run ended without a result. */
function failureText({ kind, error, node, actor = null }: Data<'RunFailed'>, names: Names): string {
  const by = kind === 'cancelled' && actor !== null ? ` ${actor} cancelled it.` : '';
  const at = node === null || kind === 'cancelled' || kind === 'rejected' ? '' : ` At ${names.node(node)}:`;
  // The record names God Mode also at a pause for the budget.
  const why = error === REJECTED ? '' : ` ${error}`;
  return `${runFailureText(kind).what}${by}${at}${why}`;
}

/** How its budget has ended a run at an event, or null if it has not. */
export function budgetEndAt(events: readonly RunEvent[], seq: number): BudgetEnd | null {
  const last = events[seq];
  if (last?.type !== 'RunCompleted' && last?.type !== 'RunFailed') return null;
  return budgetEndOf(
    last,
    events.slice(0, seq).findLast(({ type }) => type === 'RunPaused'),
  );
}

/** The error of a run at an event: the recorded one with labels, but it names the budget if a human rejected that pause. */
export function errorAt(events: readonly RunEvent[], seq: number, names: Names): string | null {
  const last = events[seq];
  if (last?.type !== 'RunFailed') return null;
  const end = budgetEndAt(events, seq);
  return end === null ? withLabels(last.data.error, names) : BUDGET_ENDS[end];
}

/** The state of an execution. */
export function executionText(state: ExecutionState): string {
  return EXECUTIONS[state];
}

const EXECUTIONS: Readonly<Record<ExecutionState, string>> = {
  waiting: 'waiting',
  active: 'running',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** The state of a member. */
export function memberText(state: MemberState): string {
  return MEMBERS[state];
}

const MEMBERS: Readonly<Record<MemberState, string>> = {
  waiting: 'waiting',
  active: 'running',
  answered: 'answered',
  failed: 'failed',
  discarded: 'discarded',
  cancelled: 'cancelled',
};

/** The members of a panel, rank or jury by state, such as `2 of 3 answered, 1 failed`. */
export function membersText(states: readonly MemberState[]): string {
  const count = (state: MemberState): number => states.filter((each) => each === state).length;
  const others = (['failed', 'discarded', 'cancelled'] as const).filter((state) => count(state) > 0);
  return [
    `${count('answered')} of ${states.length} answered`,
    ...others.map((state) => `${count(state)} ${MEMBERS[state]}`),
  ].join(', ');
}

/** How many members have answered, for a node of a graph: `3 of 5`. */
export function answeredText(states: readonly MemberState[]): string {
  return `${states.filter((each) => each === 'answered').length} of ${states.length}`;
}

/** Why a run waits, for a break in the timeline. */
export function waitText(kind: Waiting): string {
  return WAITINGS[kind];
}

const WAITINGS: Readonly<Record<Waiting, string>> = {
  human: 'waiting for a decision',
  'back-off': 'waiting before a retry',
  outage: 'waiting for the model’s server',
  'no-owner': 'without an instance',
  room: 'waiting in the queue',
  idle: 'idle',
};

// Parts of sentences.

/** A node, or one of its members. */
function workerName(
  { node, member }: { readonly node: string; readonly member?: string | undefined },
  names: Names,
): string {
  return member === undefined ? names.node(node) : `${names.member(node, member)} of ${names.node(node)}`;
}

function actorName(actor: string | null | undefined): string {
  return actor ?? 'A user';
}

function commentText(comment: string | null): string {
  return comment === null || comment.trim() === '' ? '' : `, saying “${excerpt(comment)}”`;
}

function list(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function unknownType({ type }: { readonly type: string }): string {
  return type;
}
