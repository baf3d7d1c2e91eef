/** What a person changes for a fork, and what of it is sent: only what differs from the moment it goes on from. */
import type { ForkRequest } from '../../../generated/schemas.js';
import type { RunRecord } from '../../record/run-record.js';

/** All that can be changed, as it is written into fields. */
export interface ForkDraft {
  readonly topic: string;
  /** Empty: there is none. */
  readonly draft: string;
  /** As typed; empty: there is none. */
  readonly score: string;
  readonly feedback: readonly string[];
  /** Executions of nodes after which the run fails, as typed. */
  readonly bound: string;
  readonly nodes: readonly ForkNode[];
}

export interface ForkNode {
  readonly id: string;
  readonly label: string;
  readonly systemPrompt: string;
  /** Empty: the service's. */
  readonly model: string;
}

/** The moment after an event as fields. @throws {RangeError} before the first */
export function draftOf(record: RunRecord, at: number): ForkDraft {
  const [moment, state] = [record.momentAt(at), record.stateAt(at)];
  if (moment === null || state === null) throw new RangeError('Cannot fork a run without events');
  const { topic, draft, score, feedback } = moment;
  return {
    ...{ topic, feedback, draft: draft ?? '', score: score === null ? '' : String(score) },
    bound: String(state.request.limits.maxNodeExecutions),
    nodes: state.plan.graph.nodes.map(({ id, label, systemPrompt, model = '' }) => ({
      id,
      label,
      systemPrompt,
      model,
    })),
  };
}

/** What is sent; undefined: nothing was changed. */
export function changesOf(before: ForkDraft, after: ForkDraft): ForkRequest['changes'] {
  const state = stateChanges(before, after);
  const nodes = after.nodes.flatMap((node, index) => {
    const { systemPrompt, model } = before.nodes[index] ?? node;
    const changed = {
      ...(node.systemPrompt !== systemPrompt && { systemPrompt: node.systemPrompt }),
      ...(node.model !== model && node.model.trim() !== '' && { model: node.model.trim() }),
    };
    return Object.keys(changed).length === 0 ? [] : [{ id: node.id, ...changed }];
  });
  const changes = {
    ...(after.topic !== before.topic && { input_topic: after.topic }),
    ...(Object.keys(state).length > 0 && { modified_state: state }),
    ...(nodes.length > 0 && { nodes }),
    ...(after.bound !== before.bound && { max_node_executions: Number(after.bound) }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** What is no number is sent as it is typed: the service says what is wrong with it. */
function stateChanges(before: ForkDraft, after: ForkDraft): Record<string, unknown> {
  const typed = after.score.trim().replace(',', '.');
  const score = typed === '' ? null : Number.isFinite(Number(typed)) ? Number(typed) : typed;
  const feedback = after.feedback.filter((text) => text.trim() !== '');
  const isSame = JSON.stringify(feedback) === JSON.stringify(before.feedback);
  return {
    ...(after.draft !== before.draft && { current_draft: after.draft }),
    ...(after.score !== before.score && { critic_score: score }),
    ...(!isSame && { feedback_history: feedback }),
  };
}
