/** An edit of a run's state: the typed fields, and the override with the fields that differ. */
import type { CurrentState, FieldError, GodModeState, StateOverride } from '../../../generated/schemas.js';

/** The typed fields. Numbers are text until they are sent. */
export interface Edit {
  readonly topic: string;
  /** The drafts of the nodes that wait. */
  readonly drafts: readonly BranchDraft[];
  readonly score: string;
  readonly iterations: string;
  readonly route: string;
  readonly feedback: readonly string[];
}

export interface BranchDraft {
  /** Or null in a run with one branch. */
  readonly node: string | null;
  readonly text: string;
}

/** Errors by field; under '' those of no field. */
export type Faults = Readonly<Record<string, string>>;

/** A changed field. */
export interface Change {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

/** The editable fields of a state. Each branch that waits for a decision has a draft. */
export function editOf({ current_state: shown, branches = [], next_nodes: next }: EditedState): Edit {
  const waiting = branches.filter(({ node }) => next.includes(node));
  return {
    topic: shown.input_topic,
    drafts:
      waiting.length === 0
        ? [{ node: null, text: shown.current_draft ?? '' }]
        : waiting.map(({ node, current_draft: draft }) => ({ node, text: draft ?? '' })),
    score: shown.critic_score === null ? '' : String(shown.critic_score),
    iterations: String(shown.iteration_count),
    route: shown.route_decision ?? '',
    feedback: shown.feedback_history,
  };
}

interface EditedState extends Pick<GodModeState, 'branches' | 'next_nodes'> {
  readonly current_state: Omit<CurrentState, 'run_id' | 'active_node'>;
}

/** Errors of fields that are not numbers, or out of range. */
export function invalidNumbers({ score, iterations }: Edit): Faults {
  const number = numberIn(score);
  const isScore = number === null || (number >= 0 && number <= 10);
  return {
    ...(!isScore && { critic_score: 'Enter a number from 0 to 10, or nothing' }),
    ...(!/^\d+$/.test(iterations.trim()) && { iteration_count: 'Enter a whole number' }),
  };
}

/** The override with the changed fields. */
export function overrideOf(before: Edit, after: Edit): StateOverride {
  const drafts = after.drafts.filter(({ text }, index) => text !== before.drafts[index]?.text);
  const branches = drafts.flatMap(({ node, text }) => (node === null ? [] : [{ node, current_draft: text }]));
  const [single] = drafts.filter(({ node }) => node === null);
  const feedback = after.feedback.filter((text) => text.trim() !== '');
  return {
    ...(after.topic !== before.topic && { input_topic: after.topic }),
    ...(single !== undefined && { current_draft: single.text }),
    ...(branches.length > 0 && { branches }),
    ...(after.score !== before.score && { critic_score: numberIn(after.score) }),
    ...(after.iterations !== before.iterations && { iteration_count: Number(after.iterations) }),
    ...(after.route !== before.route && { route_decision: routeOf(after.route) }),
    ...(JSON.stringify(feedback) !== JSON.stringify(before.feedback) && { feedback_history: feedback }),
  };
}

/** A number with a decimal comma or point, or null for an empty text. */
function numberIn(text: string): number | null {
  return text.trim() === '' ? null : Number(text.replace(',', '.'));
}

function routeOf(text: string): 'approve' | 'rework' | null {
  return text === 'approve' || text === 'rework' ? text : null;
}

/** Gives the label of a node. */
export type LabelOf = (node: string) => string;

/** The changed fields, for the preview. */
export function changesIn(before: Edit, after: Edit, labelOf: LabelOf): readonly Change[] {
  const feedback = (edit: Edit): string => edit.feedback.join('\n\n');
  return [
    { label: 'Topic', before: before.topic, after: after.topic },
    ...after.drafts.map(({ node, text }, index) => {
      return { label: draftLabel(node, labelOf), before: before.drafts[index]?.text ?? '', after: text };
    }),
    { label: 'Score', before: before.score, after: after.score },
    { label: 'Iteration', before: before.iterations, after: after.iterations },
    { label: 'Route', before: before.route, after: after.route },
    { label: 'Feedback', before: feedback(before), after: feedback(after) },
  ].filter((change) => change.before !== change.after);
}

export function draftLabel(node: string | null, labelOf: LabelOf): string {
  return node === null ? 'Draft' : `Draft for ${labelOf(node)}`;
}

/** Errors of the service by field: `branches` with the node, `feedback` with the index. */
export function faultsOf(errors: readonly FieldError[], sent: StateOverride): Faults {
  const faults: Record<string, string> = {};
  for (const { loc, msg } of errors) {
    const key = fieldAt(loc, sent);
    faults[key] = faults[key] === undefined ? msg : `${faults[key]}; ${msg}`;
  }
  return faults;
}

/** Fields of an override with a single value. */
const SINGLE_FIELDS: readonly unknown[] = [
  'input_topic',
  'current_draft',
  'critic_score',
  'iteration_count',
  'route_decision',
];

function fieldAt([, of, field, index]: FieldError['loc'], sent: StateOverride): string {
  if (of === 'comment') return of;
  if (SINGLE_FIELDS.includes(field)) return String(field);
  const node = field === 'branches' ? sent.branches?.[Number(index)]?.node : undefined;
  if (node !== undefined) return `branches ${node}`;
  return field === 'feedback_history' && index !== undefined ? `feedback ${index}` : '';
}
