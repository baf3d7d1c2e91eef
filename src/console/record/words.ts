/** What happens in a run, in plain words. Complete by type: a kind of event or status that is added does not compile without. */
import type { RunEvent } from '../../client/run-events.js';
import type { GateAction, NodeUsage, RunFailedData, RunTotals, StateOverride } from '../../generated/schemas.js';
import type { RunStatus } from '../../run/state.js';
import { countOf, EXCERPT_CHARS, excerpt, shortCount } from './counts.js';
import { lengthText } from './durations.js';
import type { ExecutionState } from './executions.js';
import { plainDraft } from './plain-draft.js';
import type { Waiting } from './timeline.js';

/** An event as one plain sentence; of a type that this version does not know, its name. */
export function eventWords(event: RunEvent): string {
  switch (event.type) {
    case 'RunRequested':
      return requestWords(event.data);
    case 'RunClaimed':
      return CLAIMS[event.data.reason];
    case 'RunReleased':
      return RELEASES[event.data.reason];
    case 'RunStarted':
      return 'The council began its work.';
    case 'RunResumed':
      return event.data.nextNodes.length === 0
        ? 'The run went on.'
        : `The run went on with ${list(event.data.nextNodes)}.`;
    case 'NodeStarted':
      return startWords(event.data);
    case 'ToolCalled':
      return toolWords(event.data);
    case 'NodeCompleted':
      return completionWords(event.data);
    case 'NodeFailed':
      return attemptFailureWords(event.data);
    case 'RunPaused':
      return `The run paused${before(event.data.nextNodes)} and waits for a human.`;
    case 'VoteCast':
      return `${who(event.data.actor)} voted to ${event.data.action}${saying(event.data.comment)}. More approvers are needed.`;
    case 'PauseEscalated':
      return `Nobody decided in time: ${list(event.data.to)} ${event.data.to.length === 1 ? 'is' : 'are'} asked now.`;
    case 'GateDecided':
      return decisionWords(event.data);
    case 'RunCompleted':
      return endWords(event.data);
    case 'RunFailed':
      return `The run ended without a result: ${failureOf(event.data).what}`;
    default:
      return nameOf(event);
  }
}

type Data<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>['data'];

function requestWords({ inputTopic, blueprintName, godMode, parent, actor }: Data<'RunRequested'>): string {
  const council = blueprintName === null ? 'the built-in council' : `the council “${excerpt(blueprintName)}”`;
  const mode = godMode ? ', pausing before each step' : '';
  const origin = parent === null ? '' : `, as a fork of run ${parent.runId} at event ${parent.at}`;
  return `${who(actor)} asked ${council} for “${excerpt(inputTopic)}”${mode}${origin}.`;
}

const CLAIMS: Readonly<Record<Data<'RunClaimed'>['reason'], string>> = {
  started: 'An instance of the service took the run on.',
  resumed: 'An instance of the service took the run on again.',
  recovered: 'Another instance of the service took the run over: the one before was lost.',
  handover: 'Another instance of the service took the run on: the one before stopped.',
};

const RELEASES: Readonly<Record<Data<'RunReleased'>['reason'], string>> = {
  paused: 'No instance needs to run it now: it waits for a human.',
  shutdown: 'The instance that ran it stopped, and let go of it.',
};

function startWords({ node, attempt, model, delayMs, iteration }: Data<'NodeStarted'>): string {
  const again = attempt > 1 ? ` again, attempt ${attempt}` : '';
  const wait = delayMs > 0 ? ` after a wait of ${lengthText(delayMs)}` : '';
  const draft = iteration > 0 ? `, ${countOf(iteration, 'draft')} so far` : '';
  return `${node} started${again} with ${model}${wait}${draft}.`;
}

function toolWords({ node, tool, arguments: given, hits, error, durationMs }: Data<'ToolCalled'>): string {
  const query = typeof given === 'object' && 'query' in given ? String(given['query']) : '';
  const asked = query === '' ? tool : `${tool} for “${excerpt(query)}”`;
  if (error !== null) return `${node} asked ${asked} in vain: ${excerpt(error)}`;
  return `${node} asked ${asked} and got ${countOf(hits.length, 'passage')} in ${lengthText(durationMs)}.`;
}

function completionWords({ node, output, route }: Data<'NodeCompleted'>): string {
  if ('draft' in output) {
    const then = route.next.length === 0 ? 'its branch ended' : `sent it to ${list(route.next)}`;
    return `${node} wrote a draft of ${countOf([...output.draft].length, 'character')} and ${then}${because(route.reason)}.`;
  }
  const { score, feedback } = output;
  const said = feedback.trim() === '' ? '' : `: ${excerpt(plainDraft(feedback.slice(0, 4 * EXCERPT_CHARS)))}`;
  return `${node} scored ${score} and ${scoredThen(route)}${said}`;
}

/** What a critic's route means. */
function scoredThen({ next, reason }: Data<'NodeCompleted'>['route']): string {
  if (next.length === 0) return 'ended its branch';
  if (reason === 'condition rework') return `sent the draft back to ${list(next)}`;
  if (reason === 'condition approve') return `let the draft go on to ${list(next)}`;
  return `sent the draft to ${list(next)}${because(reason)}`;
}

function because(reason: string): string {
  const [, condition] = /^condition (.*)$/s.exec(reason) ?? [];
  return condition === undefined ? '' : ` because of ${excerpt(condition)}`;
}

function attemptFailureWords({ node, attempt, kind, message, retryable, outageMs }: Data<'NodeFailed'>): string {
  const { what } = modelFailure(kind);
  const then =
    outageMs !== undefined
      ? ` The run waits for the server up to ${lengthText(outageMs)}.`
      : retryable
        ? ''
        : ' It is not tried again.';
  return `${node} failed at attempt ${attempt}: ${what ?? excerpt(message)}${then}`;
}

function decisionWords(data: Data<'GateDecided'>): string {
  const { action, actor, comment = null, nextNodes, by } = data;
  const subject = by === 'deadline' ? 'Nobody decided in time: the deadline' : who(actor);
  const changed = action === 'modify' ? changes(data.modifiedState) : '';
  const then = nextNodes.length === 0 ? '' : ` Next: ${list(nextNodes)}.`;
  return `${subject} ${DECIDED[action]}${changed}${saying(comment)}.${then}`;
}

const DECIDED: Readonly<Record<GateAction, string>> = {
  approve: 'approved',
  reject: 'rejected the run',
  modify: 'let the run go on',
};

function changes(override: StateOverride | null): string {
  const fields = Object.keys(override ?? {});
  return fields.length === 0
    ? ' unchanged'
    : ` with ${fields.map((field) => FIELDS[field] ?? field).join(', ')} changed`;
}

/** The fields of a run's state, as a person names them. */
const FIELDS: Readonly<Record<string, string>> = {
  ...{ input_topic: 'topic', current_draft: 'draft', final_draft: 'final draft', critic_score: 'score' },
  ...{ iteration_count: 'number of drafts', feedback_history: 'feedback', route_decision: 'verdict' },
  ...{ branches: 'drafts of branches', active_node: 'active node', next_nodes: 'next nodes' },
};

function endWords({ criticScore, iterationCount, finalDraft }: Data<'RunCompleted'>): string {
  const score = criticScore === null ? '' : `, scored ${criticScore}`;
  const drafts = iterationCount === null ? '' : ` after ${countOf(iterationCount, 'draft')}`;
  return `The council finished${drafts}${score}${finalDraft === null ? ', without a draft' : ''}.`;
}

function nameOf({ type }: { readonly type: string }): string {
  return type;
}

/** What went wrong, and what to do about it. */
export interface FailureWords {
  readonly what: string;
  readonly todo: string;
}

/** Why a run ended without a result. */
export function failureOf({ kind, error, node, actor = null }: RunFailedData): FailureWords {
  const { what, todo } = RUN_FAILURES[kind];
  const by = kind === 'cancelled' && actor !== null ? ` by ${actor}` : '';
  const at = node === null || kind === 'cancelled' || kind === 'rejected' ? '' : ` at ${node}`;
  return { what: `${what}${by}${at}. ${error}`, todo };
}

const RUN_FAILURES: Readonly<Record<RunFailedData['kind'], FailureWords>> = {
  cancelled: { what: 'It was cancelled', todo: 'Fork it at the event before, to go on from there.' },
  rejected: { what: 'A human rejected it', todo: 'Fork it at the pause, to decide otherwise.' },
  node_failed: { what: 'A node failed', todo: 'See its last attempt; then fork the run before it.' },
  no_route: { what: 'No edge of a node held', todo: 'Give the node a linear edge too.' },
  draft_too_large: {
    what: 'A draft grew too large',
    todo: 'Ask for shorter texts in the prompt, or join fewer branches.',
  },
  execution_limit: {
    what: 'It ran in circles',
    todo: 'Look at the conditions of its loop; a fork may raise the bound.',
  },
  takeover_limit: {
    what: 'Instances were lost over it again and again',
    todo: 'Look at the log of the service.',
  },
  not_runnable: { what: 'Its council cannot run', todo: 'Open the blueprint: it shows the faults.' },
  internal: { what: 'The service failed', todo: 'Look at the log of the service.' },
};

/** A kind of failed attempt in plain words; `what` is null for kinds that this version does not know. */
export function modelFailure(kind: string): { readonly what: string | null; readonly todo: string } {
  const known = MODEL_FAILURES.find(([kinds]) => kinds.split(' ').includes(kind));
  return known === undefined ? { what: null, todo: MESSAGE } : { what: known[1], todo: known[2] };
}

const WAIT = 'Nothing: it is tried again by itself.';
const MESSAGE = 'See the message.';
const SETTINGS = 'Check the model’s key and address in the settings of the service.';
const OTHER_MODEL = 'Choose another model.';
const SHORTER = 'Ask for shorter texts in the prompt.';
const OTHER_PROMPT = 'Change the topic or the prompt, or choose another model.';

type ModelFailure = readonly [kinds: string, what: string, todo: string];

const MODEL_FAILURES: readonly ModelFailure[] = [
  ['aborted request_timeout', 'The call was broken off.', WAIT],
  ['timeout', 'The model did not answer in time.', 'Give the node more time, or choose a faster model.'],
  ['rate_limited', 'The provider asked to slow down.', 'Nothing: it is tried again later. Often: raise the quota.'],
  ['overloaded unavailable bad_gateway gateway_timeout', 'The provider is overloaded or away.', WAIT],
  ['server_error', 'The provider had an error.', WAIT],
  ['http_error error_answer model_error', 'The provider answered with an error.', MESSAGE],
  ['not_implemented', 'The provider cannot do what was asked.', OTHER_MODEL],
  ['bad_request', 'The provider refused the request.', 'See the message; often the prompt is too long for the model.'],
  ['unauthorized', 'The provider did not accept the key.', SETTINGS],
  ['forbidden', 'The key may not use this model.', SETTINGS],
  ['model_unknown model_unusable', 'There is no such model.', OTHER_MODEL],
  [
    'connection_refused',
    'Nobody answers at the address of the model.',
    'Start the server of the model, or check its address.',
  ],
  ['connection_lost network_error', 'The connection broke.', WAIT],
  ['host_unknown unreachable', 'The host of the model could not be found or reached.', SETTINGS],
  ['redirected', 'The address of the model leads elsewhere.', SETTINGS],
  ['tls_failed', 'No trusted connection came about.', 'Check the certificate of the server and its address.'],
  ['empty_answer no_text no_candidates no_choices unreadable_answer', 'The answer held nothing to read.', WAIT],
  ['thoughts_only', 'The model thought and did not answer.', 'Allow longer answers, or choose another model.'],
  [
    'unusable_critique',
    'The answer held no score from 0 to 10.',
    'Choose a model that follows instructions for the critic.',
  ],
  ['max_tokens', 'The answer was cut off at its greatest length.', 'Allow longer answers at the node.'],
  ['draft_too_large feedback_too_large answer_too_large', 'The answer was too large.', SHORTER],
  ['unknown_finish', 'The answer ended for an unknown reason.', MESSAGE],
  ['content_filter prompt_blocked', 'The provider refused the prompt, or withheld the answer.', OTHER_PROMPT],
  ['quota_used_up', 'The quota is used up.', 'Raise it at the provider, or choose another model.'],
];

/** A run's status. */
export function statusWords(status: RunStatus): string {
  return STATUSES[status];
}

const STATUSES: Readonly<Record<RunStatus, string>> = {
  pending: 'Waits for room',
  running: 'At work',
  paused: 'Waits for you',
  completed: 'Finished',
  failed: 'Failed',
};

/** How an execution stands. */
export function executionWords(state: ExecutionState): string {
  return EXECUTIONS[state];
}

const EXECUTIONS: Readonly<Record<ExecutionState, string>> = {
  ...{ waiting: 'waits', active: 'at work', done: 'done', failed: 'failed', cancelled: 'broken off' },
};

/** Why a run waits, as a timeline's break tells it. */
export function waitingWords(kind: Waiting): string {
  return WAITINGS[kind];
}

const WAITINGS: Readonly<Record<Waiting, string>> = {
  human: 'waited for a human',
  'back-off': 'waited before another attempt',
  outage: 'waited for the model’s server',
  'no-owner': 'nobody ran it',
  room: 'waited for room',
  idle: 'nothing happened',
};

// Counts.

/** Tokens of one execution; null: the provider told none. */
export function tokenWords(usage: NodeUsage | null): string {
  if (usage === null) return 'tokens not told';
  return `${shortCount(usage.inputTokens)} tokens in, ${shortCount(usage.outputTokens)} out`;
}

/** What a run has used: calls and tokens, no money. */
export function usageWords({ calls, repeatedCalls, toldCalls, inputTokens, outputTokens }: RunTotals): string {
  const again = repeatedCalls === 0 ? '' : ` (${repeatedCalls} repeated)`;
  const asked = `${countOf(calls, 'call')}${again}`;
  if (inputTokens === null && outputTokens === null) return `${asked}, tokens not told`;
  const tokens = tokenWords({ inputTokens: inputTokens ?? 0, outputTokens: outputTokens ?? 0 });
  return `${asked}, ${tokens}${toldCalls < calls ? `, ${calls - toldCalls} not told` : ''}`;
}

// Parts of sentences.

function who(actor: string | null | undefined): string {
  return actor ?? 'Someone';
}

function saying(comment: string | null): string {
  return comment === null || comment.trim() === '' ? '' : `, saying “${excerpt(comment)}”`;
}

function before(nodes: readonly string[]): string {
  return nodes.length === 0 ? '' : ` before ${list(nodes)}`;
}

function list(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
