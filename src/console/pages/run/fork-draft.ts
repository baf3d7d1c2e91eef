/** The fields of a fork, and the changes to send: only fields that differ from the event. */
import type { ForkRequest } from '../../../generated/schemas.js';
import type { RunRecord } from '../../record/run-record.js';
import type { Edit } from '../inbox/edit.js';
import { editOf, overrideOf } from '../inbox/edit.js';

/** The editable fields of a fork. */
export interface ForkDraft extends Edit {
  /** The limit of node executions, as typed. */
  readonly bound: string;
  readonly nodes: readonly ForkNode[];
}

export interface ForkNode {
  readonly id: string;
  readonly label: string;
  readonly systemPrompt: string;
  /** Empty for the service's default. */
  readonly model: string;
}

/** The fields of a fork at an event. @throws {RangeError} the run has no event */
export function draftOf(record: RunRecord, at: number): ForkDraft {
  const [snapshot, state] = [record.snapshotAt(at), record.stateAt(at)];
  if (snapshot === null || state === null) throw new RangeError('Cannot fork a run without events');
  const { topic, draft, score, iteration, feedback, route, branches, nextNodes } = snapshot;
  const shown = {
    ...{ input_topic: topic, current_draft: draft, critic_score: score, iteration_count: iteration },
    ...{ feedback_history: [...feedback], route_decision: route },
  };
  const several = branches.length > 1 ? branches : [];
  return {
    ...editOf({
      current_state: shown,
      branches: several.map(({ node, draft: own }) => ({ node, current_draft: own })),
      next_nodes: [...nextNodes],
    }),
    bound: String(state.request.limits.maxNodeExecutions),
    nodes: state.plan.graph.nodes.map(({ id, label, systemPrompt, model = '' }) => ({
      id,
      label,
      systemPrompt,
      model,
    })),
  };
}

/** The changes to send, or `undefined` if there are none. */
export function changesOf(before: ForkDraft, after: ForkDraft): ForkRequest['changes'] {
  const { input_topic: topic, ...state } = overrideOf(before, after);
  const nodes = after.nodes.flatMap((node, index) => {
    const { systemPrompt, model } = before.nodes[index] ?? node;
    const changed = {
      ...(node.systemPrompt !== systemPrompt && { systemPrompt: node.systemPrompt }),
      ...(node.model !== model && node.model.trim() !== '' && { model: node.model.trim() }),
    };
    return Object.keys(changed).length === 0 ? [] : [{ id: node.id, ...changed }];
  });
  const changes = {
    ...(topic !== undefined && { input_topic: topic }),
    ...(Object.keys(state).length > 0 && { modified_state: state }),
    ...(nodes.length > 0 && { nodes }),
    ...(after.bound !== before.bound && { max_node_executions: Number(after.bound) }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}
