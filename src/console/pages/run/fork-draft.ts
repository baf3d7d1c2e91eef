/** The fields of a fork, and the changes to send: only fields that differ from the event. */
import type { ForkRequest } from '../../../generated/schemas.js';
import type { LimitFaults, TypedLimits } from '../../record/budget.js';
import { limitsIn, typedLimits } from '../../record/budget.js';
import type { RunRecord } from '../../record/run-record.js';
import type { Edit } from '../inbox/edit.js';
import { editOf, overrideOf } from '../inbox/edit.js';

/** The editable fields of a fork. */
export interface ForkDraft extends Edit {
  /** The limit of node executions, as typed. */
  readonly bound: string;
  readonly nodes: readonly ForkNode[];
  /** The limits of its budget, or null if the run has none. */
  readonly limits: TypedLimits | null;
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
    limits: state.spending === null ? null : typedLimits(state.spending.budget),
    nodes: state.plan.graph.nodes.map(({ id, label, systemPrompt, model = '' }) => ({
      id,
      label,
      systemPrompt,
      model,
    })),
  };
}

/** The budget to send, or `undefined` if it is that of the run. @param record that the fork continues */
export function budgetOf(before: ForkDraft, after: ForkDraft, record: RunRecord): ForkRequest['budget'] {
  if (after.limits === null || JSON.stringify(after.limits) === JSON.stringify(before.limits)) return undefined;
  const onExceeded = record.stateAt(0)?.spending?.budget.onExceeded;
  return { ...limitsIn(after.limits).limits, ...(onExceeded !== undefined && { on_exceeded: onExceeded }) };
}

/** What is wrong with the limits: a run with a budget has at least one. */
export function limitFaults({ limits }: ForkDraft): LimitFaults {
  if (limits === null) return {};
  const isEmpty = limits.usd.trim() === '' && limits.tokens.trim() === '';
  return isEmpty ? { tokens: 'Enter a limit in dollars or tokens.' } : limitsIn(limits).faults;
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
