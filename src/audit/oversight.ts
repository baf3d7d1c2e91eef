/** The decisions of a run's humans and deadlines, for a compliance officer: who decided what, on which draft, and when. */
import { changesDraft } from '../draft/marking.js';
import type { OversightRow } from '../generated/schemas.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import { ruleAt, votesFor } from '../run/pauses/approvals.js';
import type { RunState } from '../run/state.js';
import { pauseOf } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { clipped } from './digest.js';

const TOPIC_CHARS = 100;

/**
 * A run's decisions in order, one row each.
 *
 * @param events in order, from the first
 * @throws {RunCorrupt} an event is invalid; also throws what the iteration throws
 */
export async function decisionsOf(runId: string, events: AsyncIterable<RunEvent>): Promise<readonly OversightRow[]> {
  const rows: OversightRow[] = [];
  /** When each approver first saw the draft of the open pause that they voted on. */
  const opened = new Map<string | null, string>();
  let run: RunState | null = null;
  for await (const recorded of events) {
    const event = upcast(recorded);
    if (event.type === 'RunPaused') opened.clear();
    if (event.type === 'VoteCast' && event.data.review) opened.set(event.data.actor, event.data.review.openedAt);
    if (event.type === 'GateDecided' && run !== null) rows.push(rowOf(event, run, opened));
    run = foldNext(runId, run, event);
  }
  return rows;
}

function rowOf(
  event: Extract<RunEvent, { type: 'GateDecided' }>,
  run: RunState,
  opened: ReadonlyMap<string | null, string>,
): OversightRow {
  const { seq, at, data } = event;
  const pause = pauseOf(run);
  if (pause === null) throw new RunCorrupt({ runId: run.runId, seq, reason: 'it decides no pause' });
  const { blueprintId, blueprintName, inputTopic } = run.request;
  const votes = data.by === 'deadline' ? [] : votesFor(pause.votes, data);
  return {
    run_id: run.runId,
    seq,
    input_topic: clipped(inputTopic, TOPIC_CHARS),
    blueprint_id: blueprintId,
    council: blueprintName,
    node: pause.nextNodes.join(', '),
    action: data.action,
    actor: data.actor,
    comment: data.comment ?? null,
    paused_at: pause.pausedAt,
    waited_ms: Math.max(0, Date.parse(at) - Date.parse(pause.pausedAt)),
    opened_at: data.review?.openedAt ?? null,
    decided_at: at,
    draft_sha256: data.shownDraftHash,
    draft_changed: changesDraft(event),
    quorum: ruleAt(run, pause, data.nextNodes)?.quorum ?? 1,
    votes: votes.map(({ actor, choice, at: votedAt, comment }) => {
      return { actor, action: choice.action, at: votedAt, comment, opened_at: opened.get(actor) ?? null };
    }),
    decided_by: data.by === 'deadline' ? 'deadline' : 'person',
  };
}
