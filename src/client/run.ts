/** One run, by its id. */
import type {
  ChartConfig,
  FoldedRun,
  ForkPlan,
  ForkRequest,
  Genealogy,
  GodModeState,
  HistoryRecord,
  RunResult,
  RunStart,
  StepPrompt,
  Verification,
} from '../generated/schemas.js';
import { ConflictError, NotFoundError } from './errors.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';
import { Pause, SeenPause } from './pause.js';
import type { EventsOptions, RunEventStream } from './run-events.js';
import { runEventStream } from './run-events.js';
import type { LiveMessage } from './tokens.js';
import { liveTokens } from './tokens.js';

const CANCELLED = 'Cancelled by the user';

export interface StateOptions extends CallOptions {
  /** `seq` of the last event that counts. Default: the newest. */
  readonly at?: number | undefined;
}

export interface PromptOptions extends CallOptions {
  /** Which attempt of the step, from 1. Default: the last. */
  readonly attempt?: number | undefined;
}

/** Where a fork begins, and what is changed there. */
export interface ForkPoint {
  /** `seq` of an event before the run's last. */
  readonly at: number;
  readonly changes?: ForkRequest['changes'] | undefined;
}

export interface ForkOptions extends CallOptions {
  /** Report what the fork would do, and start nothing. */
  readonly dryRun?: boolean | undefined;
}

/** A run by its id. Making the object sends nothing: that there is no such run shows with the first call. */
export class Run {
  readonly id: string;
  /** The service's answer to the start; null: it was not started through this object. */
  readonly started: RunStart | null;
  readonly #api: Api;

  constructor(api: Api, id: string, started: RunStart | null = null) {
    this.#api = api;
    this.id = id;
    this.started = started;
  }

  /** Its events after `from`, as they are recorded, to its end or the signal's. */
  events(options: EventsOptions = {}): RunEventStream {
    return runEventStream(this.#api, this.id, options);
  }

  /**
   * Drafts while they are written, and the nodes that start: what comes from now on, to the run's end or the signal's.
   * Nothing of it is recorded. A connection that is lost loses the rest of the drafts in work, and so does coming late; the
   * service sends tokens only of calls that begin on the instance it was reached at. A next `attempt`, and a later `turn` of
   * one, begin a draft anew. What was written in the end is in `events()`.
   *
   * @throws {TypeError} this host has no WebSocket, and none was handed over
   */
  tokens({ signal }: CallOptions = {}): AsyncIterable<LiveMessage> {
    return liveTokens(this.#api, this.id, { signal });
  }

  /** The open pause; null: the run does not wait. */
  async pause({ signal }: CallOptions = {}): Promise<SeenPause | null> {
    const path = pathOf('councils', 'run', this.id, 'state');
    try {
      const state = await this.#api.json<GodModeState>({ path, signal });
      return state.paused ? new SeenPause(this.#api, state) : null;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      // A run without God Mode has no such state, and no pause. For an unknown run the next call throws.
      await this.status({ signal });
      return null;
    }
  }

  /** The pause at an event, named as `expected_seq` in the inbox; sends nothing. */
  pauseAt(seq: number): Pause {
    return new Pause(this.#api, this.id, seq);
  }

  /** The run's result, completed or failed; waits for its end. @throws the signal's reason */
  async result({ signal }: CallOptions = {}): Promise<RunResult> {
    const status = await this.status({ signal });
    if (isOver(status)) return status;
    const { seq } = await this.state({ signal });
    const events = this.events({ from: seq, signal })[Symbol.asyncIterator]();
    while ((await events.next()).done !== true);
    signal?.throwIfAborted();
    return await this.status({ signal });
  }

  /** The run's current status. */
  status({ signal }: CallOptions = {}): Promise<RunResult> {
    return this.#api.json({ path: pathOf('councils', 'run', this.id), signal });
  }

  /** The run's entry in the history. */
  record({ signal }: CallOptions = {}): Promise<HistoryRecord> {
    return this.#api.json({ path: pathOf('runs', this.id), signal });
  }

  /** The run's state after one of its events. */
  state({ at, signal }: StateOptions = {}): Promise<FoldedRun> {
    return this.#api.json({ path: pathOf('runs', this.id, 'state'), query: { at }, signal });
  }

  /** The run's statechart, and its state in it after one of the run's events. */
  chart({ at, signal }: StateOptions = {}): Promise<ChartConfig> {
    return this.#api.json({ path: pathOf('runs', this.id, 'chart'), query: { at }, signal });
  }

  /** Which drafts and feedback led to which draft, and what humans decided. */
  genealogy({ signal }: CallOptions = {}): Promise<Genealogy> {
    return this.#api.json({ path: pathOf('runs', this.id, 'genealogy'), signal });
  }

  /** What a node was sent at a step of its own, by its last attempt or another. @throws {NotFoundError} */
  prompt(step: number, { attempt, signal }: PromptOptions = {}): Promise<StepPrompt> {
    return this.#api.json({ path: pathOf('runs', this.id, 'prompt'), query: { step, attempt }, signal });
  }

  /** Verifies the record; of an invalid one with the first difference. */
  verify({ signal }: CallOptions = {}): Promise<Verification> {
    return this.#api.json({ path: pathOf('runs', this.id, 'verify'), signal });
  }

  /** Its events as they are stored, one JSON text a line: what the hash chain can be checked with. */
  async *export({ signal }: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    const headers = { Accept: 'application/x-ndjson' };
    const answer = await this.#api.open({ path: pathOf('runs', this.id, 'events'), headers, signal });
    try {
      yield* answer.chunks;
    } finally {
      answer.close();
    }
  }

  /** Ends it as failed. @throws {ConflictError} it has ended already */
  async cancel({ signal }: CallOptions = {}): Promise<RunResult> {
    const path = pathOf('councils', 'run', this.id, 'cancel');
    try {
      return await this.#api.json<RunResult>({ method: 'POST', path, signal, isRepeatable: true });
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      // Perhaps this very call has ended it: its answer was lost, and it was sent again.
      const status = await this.status({ signal });
      if (status.error === CANCELLED) return status;
      throw error;
    }
  }

  /** What a fork would do; nothing starts. */
  fork(from: ForkPoint, options: ForkOptions & { readonly dryRun: true }): Promise<ForkPlan>;
  /** A new run that goes on from an event of this one. It is sent once: a fork has no idempotency key. */
  fork(from: ForkPoint, options?: ForkOptions & { readonly dryRun?: false | undefined }): Promise<Run>;
  async fork({ at, changes }: ForkPoint, { dryRun = false, signal }: ForkOptions = {}): Promise<ForkPlan | Run> {
    const request = { method: 'POST', path: pathOf('runs', this.id, 'fork'), body: { at, changes }, signal } as const;
    if (dryRun) return await this.#api.json<ForkPlan>({ ...request, query: { dry_run: 1 }, isRepeatable: true });
    const started = await this.#api.json<RunStart>(request);
    return new Run(this.#api, started.run_id, started);
  }
}

function isOver({ status }: RunResult): boolean {
  return status === 'completed' || status === 'failed';
}
