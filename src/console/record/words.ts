/** What happens in a run, in plain words. Complete by type: a kind of event or status that is added does not compile without. */
import type { RunEvent } from '../../client/run-events.js';
import type { GateAction, NodeUsage, RunFailedData, RunTotals, StateOverride } from '../../generated/schemas.js';
import { countOf, excerpt, shortCount } from './counts.js';
import { lengthText } from './durations.js';
import type { ExecutionState } from './executions.js';
import { withoutMarks } from './plain-draft.js';
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
      return 'The run went on.';
    case 'NodeStarted':
      return startWords(event.data);
    case 'ToolCalled':
      return toolWords(event.data);
    case 'NodeCompleted':
      return completionWords(event.data);
    case 'NodeFailed':
      return attemptFailureWords(event.data);
    case 'RunPaused':
      return `The run paused before ${list(event.data.nextNodes)}.`;
    case 'VoteCast':
      return `${who(event.data.actor)} voted to ${event.data.action}${saying(event.data.comment)}.`;
    case 'PauseEscalated':
      return `Nobody decided in time: now asked: ${list(event.data.to)}.`;
    case 'GateDecided':
      return decisionWords(event.data);
    case 'RunCompleted':
      return endWords(event.data);
    case 'RunFailed':
      return `The run ended without a result: ${failureOf(event.data).what}`;
    default:
      return nameOf(event satisfies never);
  }
}

type Data<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>['data'];

function requestWords({ inputTopic, blueprintName, parent, actor }: Data<'RunRequested'>): string {
  const council = blueprintName === null ? 'the built-in council' : `the council “${excerpt(blueprintName)}”`;
  const origin = parent === null ? '' : `, as a fork of run ${parent.runId} at event ${parent.at}`;
  return `${who(actor)} asked ${council} for “${excerpt(inputTopic)}”${origin}.`;
}

const CLAIMS: Readonly<Record<Data<'RunClaimed'>['reason'], string>> = {
  started: 'An instance took the run on.',
  resumed: 'An instance took the run on again.',
  recovered: 'Another instance took the run on: the one before was lost.',
  handover: 'Another instance took the run on: the one before stopped.',
};

const RELEASES: Readonly<Record<Data<'RunReleased'>['reason'], string>> = {
  paused: 'The instance let go of the run: it waits for a human.',
  shutdown: 'The instance stopped, and let go of the run.',
};

function startWords({ node, attempt, model, delayMs }: Data<'NodeStarted'>): string {
  const again = attempt > 1 ? ` again, attempt ${attempt}` : '';
  const wait = delayMs > 0 ? ` after a wait of ${lengthText(delayMs)}` : '';
  return `${node} started${again} with ${model}${wait}.`;
}

function toolWords({ node, tool, arguments: given, hits, error, durationMs }: Data<'ToolCalled'>): string {
  const asked = `${tool} for “${excerpt(argumentsText(given))}”`;
  if (error !== null) return `${node} asked ${asked} in vain: ${excerpt(error)}`;
  return `${node} asked ${asked} and got ${countOf(hits.length, 'passage')} in ${lengthText(durationMs)}.`;
}

/** What a tool was asked: its query, or the text that could not be used. */
export function argumentsText(given: Data<'ToolCalled'>['arguments']): string {
  return typeof given === 'string' ? given : String(given['query']);
}

function completionWords({ node, output, route }: Data<'NodeCompleted'>): string {
  const then = route.next.length === 0 ? 'its branch ended' : `sent it to ${list(route.next)}`;
  if ('draft' in output) {
    return `${node} wrote a draft of ${countOf([...output.draft].length, 'character')} and ${then}.`;
  }
  const { score, feedback } = output;
  const said = feedback.trim() === '' ? '' : `: ${excerpt(withoutMarks(feedback))}`;
  return `${node} scored the draft ${score} and ${then}${said}`;
}

function attemptFailureWords({ node, attempt, kind, message, retryable, outageMs }: Data<'NodeFailed'>): string {
  const { what } = modelFailure(kind);
  const wait = outageMs === undefined ? '' : ` The run waits for the server up to ${lengthText(outageMs)}.`;
  const then = retryable ? wait : ' It is not tried again.';
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
  const fields = Object.keys(override ?? {}).map((field) => field.replaceAll('_', ' '));
  return fields.length === 0 ? ' unchanged' : ` with ${list(fields)} changed`;
}

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

const LOG = 'See the log of the service.';
const SHORTER = 'Ask for shorter texts in the prompt.';

const RUN_FAILURES: Readonly<Record<RunFailedData['kind'], FailureWords>> = {
  cancelled: { what: 'It was cancelled', todo: 'Fork it at the event before, to go on from there.' },
  rejected: { what: 'A human rejected it', todo: 'Fork it at the pause, to decide otherwise.' },
  node_failed: { what: 'A node failed', todo: 'See its last attempt, then fork the run before it.' },
  no_route: { what: 'No edge of a node held', todo: 'Give the node a linear edge too.' },
  draft_too_large: { what: 'A draft grew too large', todo: SHORTER },
  execution_limit: { what: 'It ran in circles', todo: 'See the conditions of its loop.' },
  takeover_limit: { what: 'Its instances were lost again and again', todo: LOG },
  not_runnable: { what: 'Its council cannot run', todo: 'See the faults of the blueprint.' },
  internal: { what: 'The service failed', todo: LOG },
};

/** A kind of failed attempt in plain words; `what` is null for kinds that this version does not know. */
export function modelFailure(kind: string): { readonly what: string | null; readonly todo: string } {
  const known = MODEL_FAILURES.find(([kinds]) => kinds.test(kind));
  return known === undefined ? { what: null, todo: MESSAGE } : { what: known[1], todo: known[2] };
}

const MESSAGE = 'See the message.';
const SETTINGS = 'Check the model’s key and address in the settings of the service.';
const OTHER_MODEL = 'Choose another model.';

/** Kinds by a part of their names: the first that fits counts. */
const MODEL_FAILURES: readonly (readonly [kinds: RegExp, what: string, todo: string])[] = [
  [/^(aborted|request_timeout)$/, 'The call was broken off.', 'Wait: it is tried again.'],
  [/^timeout$/, 'The model did not answer in time.', 'Give the node more time.'],
  [/rate|load|avail|gateway|server/, 'The provider is overloaded or away.', 'Wait: it is tried again.'],
  [/connect|network|host|unreach|redirect|tls/, 'The model’s server was not reached.', SETTINGS],
  [/unauthorized|forbidden/, 'The provider did not accept the key.', SETTINGS],
  [/^model_un|not_impl/, 'The provider has no such model.', OTHER_MODEL],
  [/too_large|max_tokens/, 'The answer was too long.', SHORTER],
  [/error|bad_request/, 'The provider refused the request.', MESSAGE],
  [/_answer|no_|thoughts|critique|finish/, 'The answer held nothing of use.', OTHER_MODEL],
  [/filter|blocked/, 'The provider withheld the answer.', 'Change the topic or the prompt.'],
  [/quota/, 'The quota is used up.', 'Raise it at the provider.'],
];

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
export function usageWords({ calls, repeatedCalls, meteredCalls, inputTokens, outputTokens }: RunTotals): string {
  const again = repeatedCalls === 0 ? '' : ` (${repeatedCalls} repeated)`;
  const asked = `${countOf(calls, 'call')}${again}`;
  if (inputTokens === null && outputTokens === null) return `${asked}, tokens not told`;
  const tokens = tokenWords({ inputTokens: inputTokens ?? 0, outputTokens: outputTokens ?? 0 });
  return `${asked}, ${tokens}${meteredCalls < calls ? `, ${calls - meteredCalls} not told` : ''}`;
}

// Parts of sentences.

function who(actor: string | null | undefined): string {
  return actor ?? 'Someone';
}

function saying(comment: string | null): string {
  return comment === null || comment.trim() === '' ? '' : `, saying “${excerpt(comment)}”`;
}

function list(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
