/** A human's decision at a pause: what the pause showed, and what the decision changed. */
import type {
  GenealogyChange,
  GenealogyDecision,
  GenealogyShown,
  GenealogyUnapplied,
  StateOverride,
} from '../generated/schemas.js';
import { codePoints } from '../graph/limits.js';
import type { RunEvent } from '../run/events.js';
import { votesFor } from '../run/pauses/approvals.js';
import { humanSource } from '../run/frontier/branch.js';
import { branchInto } from '../run/frontier/frontier.js';
import { firstSteps } from '../run/frontier/node-start.js';
import type { GivenDrafts } from '../run/pauses/override-drafts.js';
import { givenDrafts } from '../run/pauses/override-drafts.js';
import type { RunPause, RunState } from '../run/state.js';
import type { Provenance } from './provenance.js';
import { distinct } from './provenance.js';
import { clipped, firstLine } from './digest.js';
import { RunCorrupt } from '../run/errors.js';
import { pauseOf } from '../run/state.js';

type GateDecided = Extract<RunEvent, { type: 'GateDecided' }>;

/** Most fields listed of an override that was not applied: its client may have sent any number. */
const MAX_FIELDS = 20;
const MAX_FIELD_CHARS = 120;

/** The run before and after the decision. */
interface Transition {
  readonly before: RunState;
  readonly after: RunState;
}

/** The decision. Adds the drafts, feedback and scores that it set to the provenance. */
export function decisionOf(
  event: GateDecided,
  { before, after }: Transition,
  provenance: Provenance,
  deps: { readonly sha256: (text: string) => string; readonly canonical: (value: unknown) => string },
): GenealogyDecision {
  const { seq, at, data } = event;
  const { gate, answers, action, actor, comment = null, nextNodes: next_nodes, route } = data;
  const shown = shownAt(before, provenance, data.shownDraftHash);
  const override = overrideOf(event, before);
  if (override !== null) addOverride(event, override, { before, after }, provenance);
  return {
    ...{ seq, at, gate, answers, action, actor, comment, shown },
    by_deadline: data.by === 'deadline',
    votes: votesBefore(event, before),
    changes: override === null ? [] : changesOf(override, { before, after, shown }, provenance),
    unapplied: data.action === 'modify' || data.modifiedState === null ? null : unapplied(data.modifiedState, deps),
    next_nodes,
    route_reason: route?.reason ?? null,
  };
}

/** The votes for the choice that was decided. */
function votesBefore({ data }: GateDecided, before: RunState): GenealogyDecision['votes'] {
  const votes = data.by === 'deadline' ? [] : votesFor(decidedPause(before).votes, data);
  return votes.map(({ actor, choice, at, comment }) => ({ actor, action: choice.action, at, comment }));
}

function shownAt(run: RunState, provenance: Provenance, draftHash: string | null): GenealogyShown {
  const { shown, inputTopic, iterationCount } = run.progress;
  return {
    draft: provenance.draftOf(shown),
    draft_hash: draftHash,
    input_topic: firstLine(inputTopic),
    critic_score: shown.score,
    iteration_count: iterationCount,
    route_decision: shown.verdict,
    feedback: provenance.feedbackOf(shown),
    next_nodes: [...nodesShown(run)],
  };
}

/** An override with its source and the nodes that got its drafts. */
interface Override {
  readonly changes: StateOverride;
  readonly source: string;
  readonly drafts: GivenDrafts;
  /** Whether it applied to every branch, even ended ones, as before decisions recorded `overrideVersion`. */
  readonly isForEvery: boolean;
}

function overrideOf({ data }: GateDecided, before: RunState): Override | null {
  if (data.action !== 'modify' || data.modifiedState === null) return null;
  const [changes, isForEvery] = [data.modifiedState, data.overrideVersion === undefined];
  const source = isForEvery ? `g${data.gate}` : humanSource(data.gate, before.progress.steps);
  const shown = nodesShown(before);
  return { changes, source, isForEvery, drafts: givenDrafts(before, changes, { source, shown }) };
}

function addOverride(
  event: GateDecided,
  override: Override,
  { before, after }: Transition,
  provenance: Provenance,
): void {
  const { changes, source, drafts, isForEvery } = override;
  const { feedback_history: texts = [], critic_score: score } = changes;
  const { seq, at } = event;
  const iteration = after.progress.iterationCount;
  const draft = provenance.draftOf(before.progress.shown);
  const current = draftsBefore(before, provenance, isForEvery);
  for (const [from, { text, nodes }] of textsIn(drafts)) {
    const parents = { drafts: isForEvery ? current : draftsOfNodes(before, provenance, nodes), feedback: [] };
    provenance.addDraft(event, from, { kind: 'human', node: null, step: null, parents, iteration, text });
  }
  if (texts.length > 0) provenance.addFeedback(event, source, { kind: 'human', node: null, draft, texts });
  if (score === undefined) return;
  const given = { kind: 'human' as const, node: null, score, verdict: after.progress.shown.verdict };
  const judged = drafts.size === 0 ? current : distinct([provenance.draftOf(after.progress.shown)]);
  provenance.addScore({ seq, at, ...given, drafts: judged, feedback: null, iteration });
}

/** The texts of an override by source, each with the nodes that got it. */
function textsIn(drafts: GivenDrafts): ReadonlyMap<string, { readonly text: string; readonly nodes: string[] }> {
  const texts = new Map<string, { readonly text: string; readonly nodes: string[] }>();
  for (const [node, { draft: text, from }] of drafts) {
    if (text === null) continue;
    const known = texts.get(from) ?? { text, nodes: [] };
    known.nodes.push(node);
    texts.set(from, known);
  }
  return texts;
}

/** The nodes that the pause showed as next. */
function nodesShown(run: RunState): readonly string[] {
  return decidedPause(run).nextNodes;
}

function decidedPause(run: RunState): RunPause {
  const pause = pauseOf(run);
  if (pause === null) throw new RunCorrupt({ runId: run.runId, seq: run.head.seq + 1, reason: 'it decides no pause' });
  return pause;
}

/** The drafts that the pause showed for these nodes. */
function draftsOfNodes(run: RunState, provenance: Provenance, nodes: readonly string[]): string[] {
  const steps = firstSteps(run, nodesShown(run));
  return distinct(
    nodes.map((node) => provenance.draftOf(branchInto(run, node, steps.get(node) ?? run.progress.steps + 1))),
  );
}

/** The drafts of the branches at a pause, joined as the pause showed them. */
function draftsBefore(run: RunState, provenance: Provenance, withEnded: boolean): string[] {
  const ended = withEnded ? run.progress.ended.map(({ branch }) => provenance.draftOf(branch)) : [];
  return distinct([
    provenance.draftOf(run.progress.shown),
    ...draftsOfNodes(run, provenance, nodesShown(run)),
    ...ended,
  ]);
}

function changesOf(
  { changes: override, source, drafts }: Override,
  { before, after, shown }: Transition & { readonly shown: GenealogyShown },
  provenance: Provenance,
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
  const idsOf = given.map(({ draft: text, from }) => provenance.draftOf({ draft: text, draftFrom: from }));
  changed('input_topic', shown.input_topic, topic === undefined ? null : firstLine(topic));
  changed('current_draft', shown.draft, provenance.draftOf({ draft: draft ?? null, draftFrom: source }));
  if (nodes.length > 0) changed('branches', draftsOfNodes(before, provenance, nodes), distinct(idsOf));
  changed('critic_score', shown.critic_score, score ?? null);
  changed('iteration_count', before.progress.iterationCount, iteration ?? null);
  changed(
    'feedback_history',
    shown.feedback,
    feedback?.length === 0 ? [] : provenance.feedbackOf(after.progress.shown),
  );
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
