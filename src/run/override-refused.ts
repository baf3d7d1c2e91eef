/** A human's override that cannot be applied. */
import { CouncilError } from '../errors.js';

/** What is wrong with an override, and where. */
export interface OverrideFault {
  readonly runId: string;
  /** The way into the override; empty: it as a whole. */
  readonly place: readonly (string | number)[];
  /**
   * `no_route`: the last node would lead nowhere. `extra_forbidden`: another value of what is only shown. Of a branch:
   * `unknown_node`, `duplicate`, or `not_next` when it is none of those about to run.
   */
  readonly kind: 'no_route' | 'extra_forbidden' | 'unknown_node' | 'duplicate' | 'not_next';
  readonly reason: string;
}

/** The override is refused: nothing is recorded, and the pause stays as it is. */
export class OverrideRefused extends CouncilError<OverrideFault> {
  readonly code = 'run.override-refused';
  constructor(data: OverrideFault) {
    super(`Cannot modify run "${data.runId}" like this: ${data.reason}`, data);
  }
}
