/** The colours of the states of executions. */
import type { ExecutionState } from '../../record/executions.js';
import type { Tone } from '../../ui/controls.js';

export const EXECUTION_TONES = {
  active: 'busy',
  waiting: 'wait',
  done: 'good',
  failed: 'bad',
  cancelled: 'plain',
} as const satisfies Record<ExecutionState, Tone>;
