/** One run, by its id. */
import type {
  Budget,
  ChartConfig,
  DeliberationRecord,
  FoldedRun,
  ForkPlan,
  ForkRequest,
  Genealogy,
  GodModeState,
  HistoryRecord,
  NextCalls,
  RunResult,
  RunStart,
  SourceList,
  StepPrompt,
  Verification,
} from '../generated/schemas.js';
import { ConflictError, NotFoundError } from './errors.js';
import type { Api, CallOptions } from './http.js';
import { bytesOf, pathOf } from './http.js';
import { Pause, SeenPause } from './pause.js';
import type { EventsOptions, RunEventStream } from './run-events.js';
import { runEventStream } from './run-events.js';
import type { LiveMessage } from './tokens.js';
import { liveTokens } from './tokens.js';

const CANCELLED = 'Cancelled by the user';

export interface StateOptions extends CallOptions {
  /** `seq` of the event after which the state is given. Default: the last event. */
  readonly at?: number | undefined;
}

export interface DraftOptions extends CallOptions {
  /** Markdown, or a document for Word. Default: `md`. */
  readonly format?: 'md' | 'docx' | undefined;
}

export interface PromptOptions extends CallOptions {
  /** Attempt of the step, from 1. Default: the last. */
  readonly attempt?: number | undefined;
}

/** The start of a fork and its changes. */
export interface ForkPoint {
  /** `seq` of an event before the run's last. */
  readonly at: number;
  readonly changes?: ForkRequest['changes'] | undefined;
  /** The most that the new run may cost. Default: the budget of this run. */
  readonly budget?: Budget | undefined;
}

export interface ForkOptions extends CallOptions {
  /** Report what the fork would do, and start nothing. */
  readonly dryRun?: boolean | undefined;
}

/** A final output of any schema: a JSON value, or null without a schema. */
export type JsonOutput = Exclude<RunResult['final_output'], undefined>;

/** The result of a run. A completed one has its final output, valid by its schema. */
export type CouncilResult<T = JsonOutput> = RunResult &
  (
    | { readonly status: 'completed'; readonly output: T }
    | { readonly status: Exclude<RunResult['status'], 'completed'>; readonly output: null }
  );

interface ReadOptions extends StateOptions, PromptOptions {
  readonly step?: number;
}

/**
 * A run by its id. The object sends nothing until a method is called. Every method throws NotFoundError for an unknown run.
 *
 * @typeParam T the type of its final output. The service checks the output by the run's schema, the client does not.
 */
export class Run<T = JsonOutput> {
  readonly id: string;
  /** The service's answer to the start, or null if another object started the run. */
  readonly started: RunStart | null;
  readonly #api: Api;

  constructor(api: Api, id: string, started: RunStart | null = null) {
    this.#api = api;
    this.id = id;
    this.started = started;
  }

  /** The events after `from` as they are recorded, until the run ends or the signal aborts. */
  events(options: EventsOptions = {}): RunEventStream {
    return runEventStream(this.#api, this.id, options);
  }

  /**
   * Pieces of drafts while models write them, and the nodes that start, from now until the run ends or the signal aborts.
   * They are not recorded: a late reader or a lost connection misses some, and an instance sends only those of its own model
   * calls. Another `attempt` or `turn` starts the draft again. `events()` has the complete drafts.
   *
   * @throws {TypeError} the host has no WebSocket and the option `webSocket` is missing
   */
  tokens({ signal }: CallOptions = {}): AsyncIterable<LiveMessage> {
    return liveTokens(this.#api, this.id, { signal });
  }

  /** The open pause, or null if the run does not wait. */
  async pause({ signal }: CallOptions = {}): Promise<SeenPause | null> {
    const path = pathOf('councils', 'run', this.id, 'state');
    try {
      const state = await this.#api.json<GodModeState>({ path, signal });
      return state.paused ? new SeenPause(this.#api, state) : null;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      // A run without God Mode has no such state and no pause. For an unknown run the next call throws.
      await this.status({ signal });
      return null;
    }
  }

  /** The pause with this `seq`, which the inbox has as `expected_seq`. Sends nothing. */
  pauseAt(seq: number): Pause {
    return new Pause(this.#api, this.id, seq);
  }

  /** The run's result, completed or failed; waits for its end. @throws the signal's reason */
  async result({ signal }: CallOptions = {}): Promise<CouncilResult<T>> {
    const status = await this.status({ signal });
    if (isOver(status)) return withOutput<T>(status);
    const { seq } = await this.state({ signal });
    const events = this.events({ from: seq, signal })[Symbol.asyncIterator]();
    while ((await events.next()).done !== true);
    signal?.throwIfAborted();
    return withOutput<T>(await this.status({ signal }));
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
  state(options: StateOptions = {}): Promise<FoldedRun> {
    return this.#read('state', options);
  }

  /**
   * The final draft of the run as the bytes of a file, or its current draft if it has no final one. Sent once.
   *
   * @throws {NotFoundError} also if it has no draft yet
   */
  async draft({ format, signal }: DraftOptions = {}): Promise<Uint8Array> {
    const answer = await this.#api.open({ path: pathOf('runs', this.id, 'draft'), query: { format }, signal });
    return await bytesOf(answer);
  }

  /** The text that the run works on, empty if it has none. */
  async material({ signal }: CallOptions = {}): Promise<string> {
    const answer = await this.#api.open({ path: pathOf('runs', this.id, 'material'), signal });
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await bytesOf(answer));
  }

  /** The statechart of the run, with its state after an event. */
  chart(options: StateOptions = {}): Promise<ChartConfig> {
    return this.#read('chart', options);
  }

  /** The drafts and feedback that led to each draft, and the decisions of humans. */
  genealogy(options: CallOptions = {}): Promise<Genealogy> {
    return this.#read('genealogy', options);
  }

  /** The answers of panels, the rankings, analyses and scores of their reviewers, and how far they agree; so far, if it runs. */
  deliberation(options: CallOptions = {}): Promise<DeliberationRecord> {
    return this.#read('deliberation', options);
  }

  /** The prompt that a node sent to its model at a step. @throws {NotFoundError} */
  prompt(step: number, options: PromptOptions = {}): Promise<StepPrompt> {
    return this.#read('prompt', { step, ...options });
  }

  /** What the open pause of the run sends to models if it is approved unchanged, and what that may cost. */
  next(options: CallOptions = {}): Promise<NextCalls> {
    return this.#read('next', options);
  }

  /** The pages of documents that the draft of the run cites, as its tools have found them. */
  sources(options: CallOptions = {}): Promise<SourceList> {
    return this.#read('sources', options);
  }

  /** Verifies the record and its hash chain. For an invalid record the answer has the first difference. */
  verify(options: CallOptions = {}): Promise<Verification> {
    return this.#read('verify', options);
  }

  /**
   * The proof that the end of the run is in the ledger (C2SP tlog-proof), or null while no checkpoint covers it or the run has
   * not ended.
   */
  async proof({ signal }: CallOptions = {}): Promise<string | null> {
    try {
      const answer = await this.#api.open({ path: pathOf('runs', this.id, 'proof'), signal });
      return new TextDecoder().decode(await bytesOf(answer));
    } catch (error) {
      if (error instanceof ConflictError) return null;
      throw error;
    }
  }

  /** The events as they are stored, one line of JSON each, in chunks of bytes. From these, anyone can check the hash chain. */
  async *export({ signal }: CallOptions = {}): AsyncGenerator<Uint8Array, void> {
    const headers = { Accept: 'application/x-ndjson' };
    const answer = await this.#api.open({ path: pathOf('runs', this.id, 'events'), headers, signal });
    try {
      yield* answer.chunks;
    } finally {
      answer.close();
    }
  }

  /** Cancels the run, which then has failed. @throws {ConflictError} it has already ended */
  async cancel({ signal }: CallOptions = {}): Promise<RunResult> {
    const path = pathOf('councils', 'run', this.id, 'cancel');
    try {
      return await this.#api.json<RunResult>({ method: 'POST', path, signal, isRepeatable: true });
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      // This call may have cancelled the run before its answer was lost and it was sent again.
      const status = await this.status({ signal });
      if (status.error === CANCELLED) return status;
      throw error;
    }
  }

  /**
   * Erases the run, which must have ended: its texts are gone then, and every read of it throws NotFoundError with status
   * 410. Needs the scope `admin`.
   *
   * @throws {ConflictError} it has not ended
   */
  async erase({ reason, signal }: CallOptions & { readonly reason?: string } = {}): Promise<void> {
    const body = reason === undefined ? {} : { body: { reason } };
    await this.#api.json({ method: 'DELETE', path: pathOf('runs', this.id), signal, isRepeatable: true, ...body });
  }

  /** What a fork would do. Starts nothing. */
  fork(from: ForkPoint, options: ForkOptions & { readonly dryRun: true }): Promise<ForkPlan>;
  /** Starts a run that continues this one after an event. Sent once, because a fork has no idempotency key. */
  fork<U = T>(from: ForkPoint, options?: ForkOptions & { readonly dryRun?: false | undefined }): Promise<Run<U>>;
  async fork<U = T>(
    { at, changes, budget }: ForkPoint,
    { dryRun = false, signal }: ForkOptions = {},
  ): Promise<ForkPlan | Run<U>> {
    const request = {
      method: 'POST',
      path: pathOf('runs', this.id, 'fork'),
      body: { at, changes, budget },
      signal,
    } as const;
    if (dryRun) return await this.#api.json<ForkPlan>({ ...request, query: { dry_run: 1 }, isRepeatable: true });
    const started = await this.#api.json<RunStart>(request);
    return new Run(this.#api, started.run_id, started);
  }

  /** A read of the run. The options but the signal are its query. */
  #read<Answer>(what: string, { signal, ...query }: ReadOptions): Promise<Answer> {
    return this.#api.json({ path: pathOf('runs', this.id, what), query, signal });
  }
}

function isOver({ status }: RunResult): boolean {
  return status === 'completed' || status === 'failed';
}

/** A result with its output. The service has checked it by the schema of which the caller names the type. */
function withOutput<T>(result: RunResult): CouncilResult<T> {
  const { status, final_output: output = null } = result;
  if (status === 'completed') return { ...result, status, output: output as T };
  return { ...result, status, output: null };
}
