/**
 * The origin of the drafts of a run, for clients: a view of the run's history and of the origins of its drafts. Texts appear
 * as digests, so the genealogy stays small however large the drafts are.
 */
import type {
  Genealogy,
  GenealogyChild,
  GenealogyDraft,
  GenealogyFailure,
  GenealogyOutcome,
  GenealogyParent,
  GenealogyToolCall,
  ParentRun,
  ParentRunShown,
  RunRequestedData,
} from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import { reusedResults } from '../run/fork.js';
import { DraftsFold } from '../run/history/drafts.js';
import { HistoryFold } from '../run/history/fold.js';
import type { Attempt } from '../run/history/history.js';
import type { Child, FrontierNode, RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { clipped, digest } from './digest.js';
import { decisionOf } from './human-decision.js';

/** Most code points of a failed attempt's message, and of an untrusted URL, title or name of a tool. */
const MAX_TEXT_CHARS = 300;

export interface GenealogyDeps {
  readonly sha256: (text: string) => string;
  /** The RFC 8785 text of a JSON value. */
  readonly canonical: (value: unknown) => string;
}

interface Folds {
  readonly parent: GenealogyParent | null;
  readonly steps: HistoryFold;
  readonly origins: DraftsFold;
}

/**
 * The genealogy of a run, or null if there are no events.
 *
 * @param events in order, from the first
 * @throws {RunCorrupt} an event is invalid; also throws what the iteration throws
 */
export async function genealogyOf(
  runId: string,
  events: AsyncIterable<RunEvent>,
  deps: GenealogyDeps,
): Promise<Genealogy | null> {
  // 1. The history, without the texts of outputs, and the origins of the drafts.
  let run: RunState | null = null;
  let folds: Folds | null = null;
  let outcome: GenealogyOutcome | null = null;
  const decisions: Genealogy['decisions'] = [];
  const children = new Map<string, GenealogyChild>();
  for await (const recorded of events) {
    const event = upcast(recorded);
    const before: RunState | null = run;
    const after = foldNext(runId, before, event);
    run = after;
    addChildren(children, event, after);
    if (event.type === 'RunRequested') {
      const origins = new DraftsFold(event, after, (texts) => digest(texts, deps.sha256));
      folds = { parent: parentOf(event.data), steps: new HistoryFold(event, after, () => false), origins };
    } else if (before !== null && folds !== null) {
      const { steps, origins } = folds;
      steps.add(event, { before, after });
      origins.add(event, { before, after });
      if (event.type === 'GateDecided') decisions.push(decisionOf(event, { before, after }, origins, deps));
      if (event.type === 'RunCompleted' || event.type === 'RunFailed') outcome = outcomeOf(event, origins.finalDraft);
    }
  }
  if (run === null || folds === null) return null;
  // 2. Each draft and each feedback with the attempts that gave it. The feedback of a jury has those of its members.
  const { parent, origins } = folds;
  const { steps } = folds.steps.history;
  const works = steps.flatMap(({ step, node, attempts, panel }) =>
    (panel?.members ?? [{ step, attempts, member: undefined }]).map((each) => ({
      node,
      step: each.step,
      member: each.member,
      attempts: each.attempts,
    })),
  );
  const lastOf = new Map(works.map(({ step, attempts }) => [step, attempts.at(-1)]));
  const panels = new Map(steps.flatMap(({ step, panel }) => (panel === null ? [] : [[step, panel.members]])));
  const drafts = origins.drafts.map(({ id, seq, at, ...draft }): GenealogyDraft => {
    const isOwn = draft.kind === 'written' || draft.kind === 'answer';
    const last = isOwn && draft.step !== null ? lastOf.get(draft.step) : undefined;
    const { attempt = null, model = null, inputHash = null, toolCalls = [] } = last ?? {};
    const made = { attempt, model: model || null, prompt_hash: inputHash, tools: toolCalls.map(toolCallOf) };
    return { id, seq, at, ...made, ...draft };
  });
  const feedback = origins.feedback.map(({ id, seq, at, step, ...given }) => {
    const of = step === null ? [] : (panels.get(step) ?? [{ step }]);
    const calls = of.flatMap((each) => lastOf.get(each.step)?.toolCalls ?? []);
    return { id, seq, at, tools: calls.map(toolCallOf), ...given };
  });
  const failures = works.flatMap(({ node, member, step, attempts }) =>
    attempts.flatMap(({ attempt, ended }): readonly GenealogyFailure[] => {
      if (ended?.how !== 'failed') return [];
      const { kind, message, retryable } = ended.failure;
      const of = { seq: ended.seq, at: ended.at, node, ...(member !== undefined && { member }), step, attempt };
      return [{ ...of, kind, message: clipped(message, MAX_TEXT_CHARS), retryable }];
    }),
  );
  failures.sort((a, b) => a.seq - b.seq);
  const { runId: run_id, head, phase, request, parentRun } = run;
  const { scores } = origins;
  const startedBy = parentRun === null ? {} : { parent_run: startOf(parentRun) };
  const of = { run_id, seq: head.seq, status: phase.status, actor: request.actor, ...startedBy, parent };
  return {
    ...of,
    drafts,
    feedback,
    scores,
    decisions,
    failures,
    ...(children.size > 0 && { children: [...children.values()] }),
    outcome,
  };
}

/** The run that has started this one for a council, without what traces need. */
function startOf({ runId: run_id, node, step, index, title }: ParentRun): ParentRunShown {
  return { run_id, node, step, index, ...(title !== undefined && { title: clipped(title, MAX_TEXT_CHARS) }) };
}

/** Adds the runs that an event tells of, by id: those that a council has started, and those that a fork has reused. */
function addChildren(children: Map<string, GenealogyChild>, { type, seq, data }: RunEvent, run: RunState): void {
  if (type !== 'RunRequested' && type !== 'ChildStarted' && type !== 'ChildEnded') return;
  const all = run.progress.frontier.flatMap((at) => at.children.map((child) => ({ at, child })));
  for (const { at, child } of all)
    if (!('child' in data) || data.child === child.runId)
      children.set(child.runId, childOf(at, child, children.get(child.runId)?.seq ?? seq));
}

function childOf({ node, step }: FrontierNode, { runId: id, index, title, end }: Child, seq: number): GenealogyChild {
  const named = title === undefined ? {} : { title: clipped(title, MAX_TEXT_CHARS) };
  return { id, node, step, index, ...named, status: end?.status ?? 'running', seq };
}

function parentOf({ parent, state, changes }: RunRequestedData): GenealogyParent | null {
  if (parent === null) return null;
  const { runId: run_id, at, hash } = parent;
  const reused_results = state === null ? 0 : reusedResults(state);
  if (changes === undefined) return { run_id, at, hash, reused_results, changes: null };
  const {
    inputTopic: input_topic,
    outputSchema: output_schema,
    state: changed,
    maxNodeExecutions,
    ...others
  } = changes;
  const named = {
    ...others,
    input_topic,
    state: changed,
    ...(output_schema !== undefined && { output_schema }),
    ...(maxNodeExecutions !== undefined && { max_node_executions: maxNodeExecutions }),
  };
  return { run_id, at, hash, reused_results, changes: named };
}

function outcomeOf(event: Extract<RunEvent, { type: 'RunCompleted' | 'RunFailed' }>, draft: string | null) {
  const { seq, at } = event;
  if (event.type === 'RunFailed') {
    const { kind, error, node, actor = null } = event.data;
    const none = { final_draft: null, critic_score: null, iteration_count: null };
    return { seq, at, status: 'failed' as const, ...none, kind, error, node, actor };
  }
  const { criticScore: critic_score, iterationCount: iteration_count } = event.data;
  const of = { seq, at, status: 'completed' as const, final_draft: draft, critic_score, iteration_count };
  return { ...of, kind: null, error: null, node: null, actor: null };
}

function toolCallOf({ called, tool, error, hits }: Attempt['toolCalls'][number]): GenealogyToolCall {
  const passages = hits.map((hit) => {
    if ('document' in hit) return hit;
    return { url: clipped(hit.url, MAX_TEXT_CHARS), title: clipped(hit.title, MAX_TEXT_CHARS), score: hit.score };
  });
  return { seq: called.seq, tool: clipped(tool, MAX_TEXT_CHARS), error, passages };
}
