/** The failure behind what a provider package throws. */
import { ModelFailed } from '../errors.js';
import { fieldOf } from '../system/untrusted.js';
import type { ModelServer, ServerCall } from './guarded-fetch.js';
import { OtherForm, failureOf } from './guarded-fetch.js';
import { callAborted } from './port.js';
import { unusable } from './unusable-answer.js';

/** The packages wrap what a fetch or a body throws; what they throw of their own is about an answer they cannot read. */
export function failureBehind(error: unknown, call: ServerCall, server: ModelServer): Error {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof ModelFailed || each instanceof OtherForm) return each;
    if (typeof fieldOf(each, 'code') === 'string') return failureOf(each, call, server);
  }
  if (call.signal.aborted) return callAborted(call.signal);
  return unusable(call, 'it has another form than an answer has', 'unreadable_answer');
}
