/** A human's decision at a pause: what the pause showed, and what the decision changed. */
import type {
  GenealogyChange,
  GenealogyDecision,
  GenealogyShown,
  GenealogyUnapplied,
  StateOverride,
} from '../generated/schemas.js';
import { codePoints } from '../graph/limits.js';
import { RunCorrupt } from '../run/errors.js';
import type { RunEvent } from '../run/events.js';
import type { DraftsFold, OverrideGiven } from '../run/history/drafts.js';
import { distinct, overrideAt } from '../run/history/drafts.js';
import type { States } from '../run/history/fold.js';
import { votesFor } from '../run/pauses/approvals.js';
import { pauseOf } from '../run/state.js';
import { clipped, firstLine } from './digest.js';

type GateDecided = Extract<RunEvent, { type: 'GateDecided' }>;

/** Most fields listed of an override that was not applied: its client may have sent any number. */
const MAX_FIELDS = 20;
const MAX_FIELD_CHARS = 120;

/** The decision. @param origins with the drafts, the feedback and the score that it has set */
export function decisionOf(
  event: GateDecided,
  { before, after }: States,
  origins: DraftsFold,
  deps: { readonly sha256: (text: string) => string; readonly canonical: (value: unknown) => string },
): GenealogyDecision {
  const { seq, at, data } = event;
  const { gate, answers, action, actor, comment = null, nextNodes: next_nodes, route } = data;
  const pause = pauseOf(before);
  if (pause === null) {
    throw new RunCorrupt({ runId: before.runId, seq: before.head.seq + 1, reason: 'it decides no pause' });
  }
  // 1. What the pause showed.
  const { shown: branch, inputTopic, iterationCount } = before.progress;
  const shown: GenealogyShown = {
    draft: origins.draftOf(branch),
    draft_hash: data.shownDraftHash,
    input_topic: firstLine(inputTopic),
    critic_score: branch.score,
    iteration_count: iterationCount,
    route_decision: branch.verdict,
    feedback: origins.feedbackOf(branch),
    next_nodes: [...pause.nextNodes],
  };
  // 2. The votes for the choice, and what it has changed.
  const votes = data.by === 'deadline' ? [] : votesFor(pause.votes, data);
  const override = overrideAt(event, before);
  return {
    seq,
    at,
    gate,
    answers,
    action,
    actor,
    comment,
    shown,
    opened_at: data.review?.openedAt ?? null,
    by_deadline: data.by === 'deadline',
    votes: votes.map((vote) => ({
      actor: vote.actor,
      action: vote.choice.action,
      at: vote.at,
      comment: vote.comment,
    })),
    changes: override === null ? [] : changesOf(override, { before, after, shown }, origins),
    unapplied: data.action === 'modify' || data.modifiedState === null ? null : unapplied(data.modifiedState, deps),
    next_nodes,
    route_reason: route?.reason ?? null,
  };
}

function changesOf(
  { changes: override, source, given: drafts }: OverrideGiven,
  { before, after, shown }: States & { readonly shown: GenealogyShown },
  origins: DraftsFold,
): GenealogyChange[] {
  const { input_topic: topic, current_draft: draft, feedback_history: feedback } = override;
  const { critic_score: score, iteration_count: iteration, route_decision: route, branches = [] } = override;
  const changes: GenealogyChange[] = [];
  const changed = (field: keyof StateOverride, from: GenealogyChange['from'], to: GenealogyChange['to']): void => {
    if (override[field] !== undefined) changes.push({ field, from, to });
  };
  // A branch sent back unchanged keeps its draft: it counts as not mentioned.
  const nodes = branches.map(({ node }) => node).filter((node) => drafts.has(node));
  const given = nodes.map((node) => drafts.get(node)).filter((each) => each !== undefined);
  const idsOf = given.map(({ draft: text, from }) => origins.draftOf({ draft: text, draftFrom: from }));
  changed('input_topic', shown.input_topic, topic === undefined ? null : firstLine(topic));
  changed('current_draft', shown.draft, origins.draftOf({ draft: draft ?? null, draftFrom: source }));
  if (nodes.length > 0) changed('branches', origins.draftsInto(before, nodes), distinct(idsOf));
  changed('critic_score', shown.critic_score, score ?? null);
  changed('iteration_count', before.progress.iterationCount, iteration ?? null);
  changed('feedback_history', shown.feedback, feedback?.length === 0 ? [] : origins.feedbackOf(after.progress.shown));
  changed('route_decision', shown.route_decision, route ?? null);
  return changes;
}

function unapplied(
  sent: object,
  { sha256, canonical }: { readonly sha256: (text: string) => string; readonly canonical: (value: unknown) => string },
): GenealogyUnapplied {
  const text = canonical(sent);
  const fields = Object.keys(sent).slice(0, MAX_FIELDS);
  return {
    fields: fields.map((name) => clipped(name, MAX_FIELD_CHARS)),
    hash: sha256(text),
    characters: codePoints(text),
  };
}
