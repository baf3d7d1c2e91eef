/** A human's decision: what was shown, and what it changed. */
import type {
  GenealogyChange,
  GenealogyDecision,
  GenealogyShown,
  GenealogyUnapplied,
  StateOverride,
} from '../generated/schemas.js';
import { codePoints } from '../council/limits.js';
import type { RunEvent } from '../run/events.js';
import { branchInto } from '../run/front.js';
import type { RunState } from '../run/state.js';
import type { Ancestry } from './ancestry.js';
import { distinct } from './ancestry.js';
import { clipped, firstLine } from './in-short.js';

type GateDecided = Extract<RunEvent, { type: 'GateDecided' }>;

/** Most fields named of an override that was not applied: any client may have sent any. */
const MAX_FIELDS = 20;
const MAX_FIELD_CHARS = 120;

interface Turn {
  readonly before: RunState;
  readonly after: RunState;
}

/** The decision; what it made of drafts, feedback and scores is added to the ancestry. */
export function decisionOf(
  event: GateDecided,
  { before, after }: Turn,
  ancestry: Ancestry,
  means: { readonly sha256: (text: string) => string; readonly canonical: (value: unknown) => string },
): GenealogyDecision {
  const { seq, at, data } = event;
  const { gate, answers, action, nextNodes: next_nodes, route } = data;
  const shown = shownAt(before, ancestry, data.shownDraftHash);
  const override = data.action === 'modify' ? data.modifiedState : null;
  if (override !== null) addOverride(event, override, { before, after }, ancestry);
  return {
    ...{ seq, at, gate, answers, action, shown },
    changes: override === null ? [] : changesOf(override, { before, after, shown }, ancestry),
    unapplied: data.action === 'modify' || data.modifiedState === null ? null : unapplied(data.modifiedState, means),
    next_nodes,
    route_reason: route?.reason ?? null,
  };
}

function shownAt({ shown, gate, ...run }: RunState, ancestry: Ancestry, draftHash: string | null): GenealogyShown {
  return {
    draft: ancestry.draftOf(shown),
    draft_hash: draftHash,
    input_topic: firstLine(run.inputTopic),
    critic_score: shown.score,
    iteration_count: run.iterationCount,
    route_decision: shown.decision,
    feedback: ancestry.feedbackOf(shown),
    next_nodes: [...(gate?.nextNodes ?? [])],
  };
}

function addOverride(event: GateDecided, override: StateOverride, { before, after }: Turn, ancestry: Ancestry): void {
  const { current_draft: text = null, feedback_history: texts = [], critic_score: score } = override;
  const { seq, at } = event;
  const [from, iteration] = [`g${event.data.gate}`, after.iterationCount];
  const draft = ancestry.draftOf(before.shown);
  if (text !== null) {
    const parents = { drafts: living(before, ancestry), feedback: [] };
    ancestry.addDraft(event, from, { kind: 'human', node: null, step: null, parents, iteration, text });
  }
  if (texts.length > 0) ancestry.addFeedback(event, from, { kind: 'human', node: null, draft, texts });
  if (score === undefined) return;
  const given = { kind: 'human' as const, node: null, score, verdict: after.shown.decision };
  const drafts = text === null ? living(before, ancestry) : distinct([ancestry.draftOf(after.shown)]);
  ancestry.addScore({ seq, at, ...given, drafts, feedback: null, iteration });
}

/** The drafts of every living branch at a pause: those that wait, joined as they were shown, and those that have ended. */
function living(run: RunState, ancestry: Ancestry): string[] {
  const waiting = (run.gate?.nextNodes ?? []).map((node, index) => branchInto(run, node, run.steps + 1 + index));
  const branches = [run.shown, ...waiting, ...run.ended.map(({ branch }) => branch)];
  return distinct(branches.map((branch) => ancestry.draftOf(branch)));
}

function changesOf(
  override: StateOverride,
  { before, after, shown }: Turn & { readonly shown: GenealogyShown },
  ancestry: Ancestry,
): GenealogyChange[] {
  const { input_topic: topic, current_draft: draft, feedback_history: feedback } = override;
  const { critic_score: score, iteration_count: iteration, route_decision: route } = override;
  const changes: GenealogyChange[] = [];
  const changed = (field: keyof StateOverride, from: GenealogyChange['from'], to: GenealogyChange['to']): void => {
    if (override[field] !== undefined) changes.push({ field, from, to });
  };
  changed('input_topic', shown.input_topic, firstLine(topic ?? ''));
  changed('current_draft', shown.draft, draft === null ? null : ancestry.draftOf(after.shown));
  changed('critic_score', shown.critic_score, score ?? null);
  changed('iteration_count', before.iterationCount, iteration ?? null);
  changed('feedback_history', shown.feedback, feedback?.length === 0 ? [] : ancestry.feedbackOf(after.shown));
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
