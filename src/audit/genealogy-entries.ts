/** The parent, failures, tool calls and outcome of a run as its genealogy shows them. */
import type {
  GenealogyFailure,
  GenealogyOutcome,
  GenealogyParent,
  GenealogyPassage,
  GenealogyToolCall,
  RunChanges,
  RunRequestedData,
  ToolHit,
} from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { reusedResults } from '../run/fork.js';
import { clipped } from './digest.js';

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Most code points of a failed attempt's message. */
const MAX_MESSAGE_CHARS = 300;

export function parentOf({ parent, state, changes }: RunRequestedData): GenealogyParent | null {
  if (parent === null) return null;
  const { runId, at, hash } = parent;
  const reused = state === null ? 0 : reusedResults(state);
  return {
    run_id: runId,
    at,
    hash,
    reused_results: reused,
    changes: changes === undefined ? null : requestedChanges(changes),
  };
}

function requestedChanges({ inputTopic, state, nodes, maxNodeExecutions }: RunChanges): GenealogyParent['changes'] {
  return {
    input_topic: inputTopic,
    state,
    nodes,
    ...(maxNodeExecutions !== undefined && { max_node_executions: maxNodeExecutions }),
  };
}

export function failureOf({ seq, at, data }: Of<'NodeFailed'>): GenealogyFailure {
  const { node, member, step, attempt, kind, retryable } = data;
  const of = { node, ...(member !== undefined && { member }), step, attempt };
  return { seq, at, ...of, kind, message: clipped(data.message, MAX_MESSAGE_CHARS), retryable };
}

export function outcomeOf(event: Of<'RunCompleted'> | Of<'RunFailed'>, finalDraft: string | null): GenealogyOutcome {
  const { seq, at } = event;
  if (event.type === 'RunFailed') {
    const { kind, error, node, actor = null } = event.data;
    return {
      seq,
      at,
      status: 'failed',
      final_draft: null,
      critic_score: null,
      iteration_count: null,
      kind,
      error,
      node,
      actor,
    };
  }
  const { criticScore, iterationCount } = event.data;
  const scored = { critic_score: criticScore, iteration_count: iterationCount };
  return { seq, at, status: 'completed', final_draft: finalDraft, ...scored, ...NOT_FAILED };
}

const NOT_FAILED = { kind: null, error: null, node: null, actor: null };

/** Most code points of an untrusted URL or title. */
const MAX_WEB_CHARS = 300;

export function toolCallOf({ seq, data }: Of<'ToolCalled'>): GenealogyToolCall {
  return { seq, tool: clipped(data.tool, MAX_WEB_CHARS), error: data.error, passages: data.hits.map(passageOf) };
}

function passageOf(hit: ToolHit): GenealogyPassage {
  if ('document' in hit) return hit;
  return { url: clipped(hit.url, MAX_WEB_CHARS), title: clipped(hit.title, MAX_WEB_CHARS), score: hit.score };
}
