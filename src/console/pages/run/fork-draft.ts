/** The fields of a fork, and the changes to send: only fields that differ from the event. */
import type { ForkRequest } from '../../../generated/schemas.js';
import type { LimitFaults, TypedLimits } from '../../record/budget.js';
import { limitsIn, typedLimits } from '../../record/budget.js';
import type { JsonSchema } from '../../record/matter.js';
import { materialFault, schemaIn } from '../../record/matter.js';
import { utf8Bytes } from '../../../graph/limits.js';
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
  readonly material: string;
  /** Ids of the documents that it searches, or none for all. */
  readonly documents: readonly string[];
  /** The JSON Schema of the output as typed, or empty if the run has none. */
  readonly schema: string;
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
    input_topic: topic,
    current_draft: draft,
    critic_score: score,
    iteration_count: iteration,
    feedback_history: [...feedback],
    route_decision: route,
  };
  const several = branches.length > 1 ? branches : [];
  return {
    ...editOf({
      current_state: shown,
      branches: several.map(({ node, draft: own }) => ({ node, current_draft: own })),
      next_nodes: [...nextNodes],
    }),
    bound: String(state.request.limits.maxNodeExecutions),
    material: state.request.material ?? '',
    documents: state.request.documents ?? [],
    schema: schemaText(state.plan.graph.nodes.find(({ isOutput }) => isOutput === true)?.schema),
    limits: state.spending === null ? null : typedLimits(state.spending.budget),
    nodes: state.plan.graph.nodes.map(({ id, label, systemPrompt, model = '' }) => ({
      id,
      label,
      systemPrompt,
      model,
    })),
  };
}

function schemaText(schema: JsonSchema | undefined): string {
  return schema === undefined ? '' : JSON.stringify(schema, null, 2);
}

/** What is wrong with the material or the schema: a fork keeps the schema of its run or has another. */
export function matterFaults(before: ForkDraft, { material, schema }: ForkDraft): MatterFaults {
  const tooLong = materialFault(utf8Bytes(material));
  const read = schemaIn(schema);
  const isRemoved = before.schema !== '' && schema.trim() === '';
  return {
    ...(tooLong !== null && { material: tooLong }),
    ...('fault' in read && { schema: read.fault }),
    ...(isRemoved && { schema: 'A fork cannot remove the schema: enter another one.' }),
  };
}

type MatterFaults = Partial<Readonly<Record<'material' | 'schema', string>>>;

/** The changes of material, documents and schema. */
function matterChanges(before: ForkDraft, { material, documents, schema }: ForkDraft): Partial<ForkChanges> {
  const read = schemaIn(schema);
  return {
    ...(material !== before.material && { material }),
    ...(documents.join() !== before.documents.join() && { documents: [...documents] }),
    ...(schema !== before.schema && 'schema' in read && read.schema !== null && { output_schema: read.schema }),
  };
}

type ForkChanges = NonNullable<ForkRequest['changes']>;

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
    ...matterChanges(before, after),
    ...(after.bound !== before.bound && { max_node_executions: Number(after.bound) }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}
