/** A pause of a run, and the three decisions that end it. */
import type { BudgetChange, GodModeState, ReviewSent, RunResult, StateOverride } from '../generated/schemas.js';
import { BadRequestError, ConflictError, StalePauseError } from './errors.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';

export interface DecisionOptions extends CallOptions {
  /** The reason, which is recorded with the decision. */
  readonly comment?: string | undefined;
  /** What the person had before them, which is recorded. Another draft than that of the pause is a `StalePauseError`. */
  readonly review?: ReviewSent | undefined;
  /** In a browser: whether the request goes on when its page closes. Its body may have 64 KiB. Default: false. */
  readonly keepalive?: boolean | undefined;
}

export interface ApproveOptions extends DecisionOptions {
  /** At a pause for the budget: the new totals, which such an approval needs. What is absent stays. */
  readonly budget?: BudgetChange | undefined;
}

/** A pause of a run. A decision has an effect only while the run waits at this pause. */
export class Pause {
  readonly runId: string;
  /** `seq` of the event with which the run paused. */
  readonly seq: number;
  readonly #api: Api;
  /** The idempotency key of each decision, so that a decision counts once even if it is sent again. */
  readonly #keys = new Map<string, string>();

  constructor(api: Api, runId: string, seq: number) {
    this.#api = api;
    this.runId = runId;
    this.seq = seq;
  }

  /** Continues the run. @throws {StalePauseError} @throws {InvalidError} the budget is missing or too small */
  approve({ budget, ...options }: ApproveOptions = {}): Promise<RunResult> {
    return this.#decide({ action: 'approve', budget }, options);
  }

  /** Ends the run as failed. @throws {StalePauseError} */
  reject(options: DecisionOptions = {}): Promise<RunResult> {
    return this.#decide({ action: 'reject' }, options);
  }

  /** Continues the run with a changed state. @throws {StalePauseError} @throws {InvalidError} the change is refused */
  modify(change: StateOverride, options: DecisionOptions = {}): Promise<RunResult> {
    return this.#decide({ action: 'modify', modified_state: change }, options);
  }

  async #decide(decision: object, { comment, review, keepalive, signal }: DecisionOptions): Promise<RunResult> {
    const body = { ...decision, expected_seq: this.seq, comment, review };
    try {
      return await this.#api.json<RunResult>({
        method: 'POST',
        path: pathOf('councils', 'run', this.runId, 'approve'),
        body,
        keepalive,
        signal,
        headers: { 'Idempotency-Key': this.#keyOf(JSON.stringify(body)) },
        isRepeatable: true,
      });
    } catch (error) {
      // The request is well-formed, so 400 means that the run is not paused.
      if (!(error instanceof ConflictError || error instanceof BadRequestError)) throw error;
      throw new StalePauseError(error.detail, { status: error.status, cause: error });
    }
  }

  #keyOf(decision: string): string {
    const key = this.#keys.get(decision) ?? this.#api.system.uuid();
    this.#keys.set(decision, key);
    return key;
  }
}

/** A pause and the state to decide on. */
export class SeenPause extends Pause {
  readonly state: GodModeState;

  constructor(api: Api, state: GodModeState) {
    super(api, state.run_id, state.seq);
    this.state = state;
  }

  /** The nodes that wait. One decision applies to all. */
  get nextNodes(): readonly string[] {
    return this.state.next_nodes;
  }
}
