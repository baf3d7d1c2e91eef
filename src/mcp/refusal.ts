/** The errors of tools: what was wrong, and what the assistant can do. */
import { RequestRefused, problemOf } from '../api/problems.js';
import { CouncilError } from '../errors.js';
import type { FieldError } from '../generated/schemas.js';
import type { Scope } from '../keys/caller.js';

/** What to do, by the code of the error. */
const ADVICE: Readonly<Record<string, string>> = {
  'run.unknown': 'Use the run_id that start_council returned.',
  'run.not-paused': 'Call get_run to see its state.',
  'run.pause-moved':
    'Nothing was decided. Call get_run, show the person the pause that is open now, and ask for the decision again.',
  'run.not-approver': 'The pause stays open. Tell the person who may decide it; list_approvals shows them.',
  'run.votes-used-up': 'Tell the person: the pause accepts no more votes.',
  'run.key-reused': 'To start another run, use another idempotency_key.',
  'blueprint.unknown': 'Call list_councils for the ids, or leave council out for the built-in council.',
  'log.outcome-unknown':
    'Call get_run or list_approvals to see whether it did; repeat a start only with the same idempotency_key.',
};

/** What to do about broken rules, by their type. */
const RULE_ADVICE: Readonly<Record<string, string>> = {
  budget: 'Ask the person for the new total, and call decide with action approve and budget.',
};

/** The text of an error for the assistant. @param requestId shown with a fault of the service, whose log has it too */
export function refusalText(error: unknown, requestId: string): string {
  const { body, headers } = problemOf(error, requestId);
  const rules = error instanceof RequestRefused ? (error.data.errors ?? []) : [];
  const wait = headers['Retry-After'];
  return [
    sentence(rules.length === 0 ? body.detail : `Nothing was done: ${rules.map(ruleText).join('; ')}`),
    ...(error instanceof CouncilError ? [ADVICE[error.code] ?? ''] : []),
    ...rules.map(({ type }) => RULE_ADVICE[type] ?? ''),
    wait === undefined || body.detail.includes('try again in') ? '' : `Try again in ${wait} seconds.`,
  ]
    .filter((each) => each !== '')
    .join(' ');
}

/** The text for a call of a tool whose scope the key lacks. */
export function scopeText(tool: string, scope: Scope): string {
  return `The key lacks the scope "${scope}", which ${tool} needs. Ask the person for a key with this scope.`;
}

/** A broken rule with the name of its argument, without `body`: an assistant has sent no body. */
function ruleText({ loc, msg }: FieldError): string {
  return `${loc.slice(1).join('.') || 'arguments'}: ${msg}`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
