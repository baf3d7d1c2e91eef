/** Serializers of the inbox: the pauses that wait for a decision. */
import { createTwoFilesPatch } from 'diff/lib/patch/create.js';
import type { Approval, ApprovalGone, Reservation } from '../../generated/schemas.js';
import { shownParent } from './parent-run.js';
import { budgetOfRun, pauseVote } from './runs.js';
import type { GonePause, LastDecision, WaitingPause } from '../../projections/inbox.js';

/** Bounds of a draft's preview and of its diff. */
const PREVIEW_LINES = 8;
const PREVIEW_CHARS = 1_000;
const DIFF_CHARS = 10_000;
/** Unchanged lines shown around each change. */
const CONTEXT_LINES = 3;
/** Most changed lines of a diff, whose cost grows with their square; past it the whole draft counts as changed. */
const MAX_EDITS = 1_000;

/**
 * A pause as the caller may see and decide it.
 *
 * @param needed what the next calls need in all, or null if the run is not paused for its budget
 */
export function approval(
  { run, pause, approvals, mayDecide, lastDecision }: WaitingPause,
  needed: Reservation | null,
): Approval {
  const { request, progress, spending } = run;
  const { draft, score } = progress.shown;
  const deadlineThen = approvals?.deadlineThen ?? null;
  return {
    run_id: run.runId,
    blueprint: { id: request.blueprintId, name: request.blueprintName, hash: request.graphHash },
    input_topic: progress.inputTopic,
    ...shownParent(run.parentRun),
    ...(pause.reason === 'budget' && { pause_reason: pause.reason }),
    ...(spending !== null && { budget: budgetOfRun(spending, needed) }),
    next_nodes: [...pause.nextNodes],
    expected_seq: pause.seq,
    waiting_since: pause.pausedAt,
    deadline: approvals?.deadline ?? null,
    ...(deadlineThen !== null && { deadline_then: deadlineThen }),
    may_decide: mayDecide,
    quorum: approvals?.quorum ?? 1,
    votes: pause.votes.map(pauseVote),
    critic_score: score,
    iteration_count: progress.iterationCount,
    draft_preview: draft && preview(draft),
    changes: lastDecision && changesSince(lastDecision, draft),
  };
}

/** How a pause ended. */
export function approvalGone({ runId, seq, at, outcome, actor }: GonePause): ApprovalGone {
  return { run_id: runId, expected_seq: seq, at, outcome, actor };
}

function preview(draft: string): string {
  return cut(draft.split('\n').slice(0, PREVIEW_LINES).join('\n'), PREVIEW_CHARS);
}

function changesSince(
  { seq, at, action, draft: before }: LastDecision,
  draft: string | null,
): NonNullable<Approval['changes']> {
  return {
    since_seq: seq,
    at,
    action,
    diff: before === draft ? '' : cut(diffOf(before ?? '', draft ?? ''), DIFF_CHARS),
  };
}

/** Only the hunks, without file headers. */
function diffOf(before: string, after: string): string {
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_EDITS };
  const patch = createTwoFilesPatch('', '', withLineEnd(before), withLineEnd(after), '', '', options);
  if (patch !== undefined) return patch.slice(patch.indexOf('@@'));
  const lines = [...before.split('\n').map((line) => `-${line}`), ...after.split('\n').map((line) => `+${line}`)];
  return `@@ all of it @@\n${lines.join('\n')}`;
}

/** Ends the text with a line feed, because a diff marks a last line without one. */
function withLineEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

/** At most `max` code units, without splitting a character. */
function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  return (
    text
      .slice(0, max - 1)
      .toWellFormed()
      .replace(/\ufffd$/, '') + '…'
  );
}
