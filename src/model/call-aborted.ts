import { ModelFailed } from '../errors.js';

/** The failure of a call whose caller has aborted it; the signal's reason is the cause. */
export function callAborted(signal: AbortSignal): ModelFailed {
  return new ModelFailed(
    'Call to the model was aborted',
    { kind: 'aborted', retryable: true },
    { cause: signal.reason },
  );
}
