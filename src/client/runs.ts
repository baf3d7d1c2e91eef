/** Starts and finds runs. */
import type {
  Budget,
  Blueprint,
  BlueprintCreate,
  Estimate,
  HistoryQuery,
  HistoryRecord,
  RunCounts,
  RunRequest,
  RunStart,
} from '../generated/schemas.js';
import type { Api, CallOptions, OpenAnswer } from './http.js';
import { bytesOf, pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';
import { Run } from './run.js';

export interface StartOptions extends CallOptions {
  /** The question or text that the council works on. */
  readonly topic: string;
  /** A saved blueprint, or its id. Default: the built-in council. */
  readonly blueprint?: string | Pick<Blueprint, 'id'> | null | undefined;
  /** Whether the run pauses before each node for a human. Default: false. */
  readonly godMode?: boolean | undefined;
  /** The most that the run may cost. Default: the blueprint's, or none. */
  readonly budget?: Budget | undefined;
  /** Model of the nodes without their own, as `provider/model`. Default: that of the service. */
  readonly model?: string | undefined;
  /** Starts with the same idempotency key start one run. Default: a new key. */
  readonly idempotencyKey?: string | undefined;
}

/** A blueprint that is not saved, and the topic. */
export interface TryOptions extends Omit<StartOptions, 'blueprint' | 'model'> {
  readonly blueprint: Omit<BlueprintCreate, 'id' | 'name'> & { readonly name?: string | undefined };
}

type OnceOptions = Pick<StartOptions, 'idempotencyKey' | 'signal'>;

/** Filters; a run must pass all that are given. */
export interface RunFilters extends CallOptions {
  readonly status?: HistoryQuery['status'] | undefined;
  /** How the run ended: rejected and cancelled runs have the status `failed`. */
  readonly outcome?: HistoryQuery['outcome'] | undefined;
  /** Id of the blueprint. */
  readonly blueprint?: string | undefined;
  /** Only runs of the built-in council. */
  readonly builtIn?: true | undefined;
  /** Only runs that try a council that is not saved, or only others. */
  readonly trial?: boolean | undefined;
  /** Name of the key that started the run. */
  readonly actor?: string | undefined;
  /** Earliest creation; as text a time in ISO 8601, or a day in UTC. */
  readonly from?: Date | string | undefined;
  /** Latest creation, in the same form. The day is included. */
  readonly to?: Date | string | undefined;
  /** Words, each of which is in the topic or in the final draft. */
  readonly q?: string | undefined;
  readonly minScore?: number | undefined;
  readonly maxScore?: number | undefined;
  /** Id of the run of which the run is a fork. */
  readonly parent?: string | undefined;
  /** Default: `-created_at`, newest first. */
  readonly sort?: HistoryQuery['sort'] | undefined;
  /** Runs per page. Default: that of the service. */
  readonly limit?: number | undefined;
}

export interface ExportOptions extends Omit<RunFilters, 'limit'> {
  /** A table, or lines of JSON. Default: `csv`. */
  readonly format?: 'csv' | 'ndjson' | undefined;
  /** At most 200 ids; the filters then have no effect. */
  readonly ids?: readonly string[] | undefined;
}

export interface EstimateOptions extends CallOptions {
  /** Id of a saved blueprint. Default: the built-in council. */
  readonly blueprint?: string | undefined;
}

export class Runs {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /**
   * Starts one run, even if an answer is lost and the start is sent again. Resolves when the run is recorded.
   *
   * @throws {InvalidError | NotFoundError | ConflictError | TooManyRequestsError}
   */
  async start({ topic, blueprint, godMode, budget, model, ...options }: StartOptions): Promise<Run> {
    const council = typeof blueprint === 'string' ? blueprint : blueprint?.id;
    const path = council === undefined ? pathOf('councils', 'run') : pathOf('councils', council, 'run');
    return await this.#start(path, requestOf({ topic, godMode, budget, model }), options);
  }

  /** Starts a run of a blueprint that is not saved, with the offline model at each node. */
  tryBlueprint({ topic, blueprint: council, godMode, budget, ...options }: TryOptions): Promise<Run> {
    const { name, nodes, edges, entry, approvals } = council;
    const body = {
      ...requestOf({ topic, godMode, budget: budget ?? council.budget }),
      name,
      nodes,
      edges,
      entry,
      approvals,
    };
    return this.#start(pathOf('councils', 'try'), body, options);
  }

  async #start(path: string, body: object, { idempotencyKey, signal }: OnceOptions): Promise<Run> {
    const started = await this.#api.json<RunStart>({
      ...{ method: 'POST', path },
      headers: { 'Idempotency-Key': idempotencyKey ?? this.#api.system.uuid() },
      isRepeatable: true,
      ...{ body, signal },
    });
    return new Run(this.#api, started.run_id, started);
  }

  /** A run's entry in the history. @throws {NotFoundError} */
  get(id: string, options: CallOptions = {}): Promise<HistoryRecord> {
    return new Run(this.#api, id).record(options);
  }

  /** The history, newest first unless sorted otherwise. */
  list(filters: RunFilters = {}): Pages<HistoryRecord> {
    return pagesOf(this.#api, { path: pathOf('runs'), query: queryOf(filters), signal: filters.signal });
  }

  /** Number of runs that pass the filters. */
  async count(filters: Omit<RunFilters, 'limit' | 'sort'> = {}): Promise<number> {
    const query = { ...queryOf(filters), limit: 1, count: 1 };
    const { headers } = await this.#api.reply({ path: pathOf('runs'), query, signal: filters.signal });
    return Number(headers.get('Total-Count'));
  }

  /** Numbers of runs that pass the filters, by status and by outcome. */
  counts(filters: Omit<RunFilters, 'limit' | 'sort' | 'status' | 'outcome'> = {}): Promise<RunCounts> {
    return this.#api.json({ path: pathOf('runs', 'counts'), query: queryOf(filters), signal: filters.signal });
  }

  /** The runs with these ids, or all that pass the filters, as the bytes of a file. Sent once. */
  async export(options: ExportOptions = {}): Promise<Uint8Array> {
    return await bytesOf(await this.#openExport(options));
  }

  /** The same in chunks, for any number of runs. */
  async *exportChunks(options: ExportOptions = {}): AsyncGenerator<Uint8Array, void> {
    const answer = await this.#openExport(options);
    try {
      yield* answer.chunks;
    } finally {
      answer.close();
    }
  }

  #openExport({ format, ids, ...filters }: ExportOptions): Promise<OpenAnswer> {
    const query = { format, ids, ...queryOf(filters) };
    return this.#api.open({ path: pathOf('runs', 'export'), query, signal: filters.signal });
  }

  /** What the last completed runs of a saved council, or of the built-in one, have used. */
  estimate({ blueprint, signal }: EstimateOptions = {}): Promise<Estimate> {
    return this.#api.json({ path: pathOf('estimate'), query: { blueprint_id: blueprint }, signal });
  }
}

function requestOf({
  topic,
  godMode,
  budget,
  model,
}: Pick<StartOptions, 'topic' | 'godMode' | 'budget' | 'model'>): RunRequest {
  return {
    input_topic: topic,
    ...(godMode !== undefined && { god_mode: godMode }),
    ...(budget !== undefined && { budget }),
    ...(model !== undefined && { model }),
  };
}

function queryOf({ blueprint, builtIn, minScore, maxScore, signal: _, ...same }: RunFilters) {
  const renamed = { blueprint_id: blueprint, built_in: builtIn, min_score: minScore, max_score: maxScore };
  return { ...same, ...renamed };
}
