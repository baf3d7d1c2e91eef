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
import type { JsonOutput } from './run.js';
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
  /** Text that the council works on, at most 600,000 bytes of UTF-8. Default: none. */
  readonly material?: string | undefined;
  /** Ids of the documents that the run searches. Default: the blueprint's, or all. */
  readonly documents?: readonly string[] | undefined;
  /** JSON Schema of the output, which `result()` then has. Default: the blueprint's, or none. */
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
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
  /** Only runs that councils of the run with this id have started. */
  readonly parentRun?: string | undefined;
  /** Also runs that councils have started. Default: they are left out. */
  readonly children?: boolean | undefined;
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

export interface OversightOptions extends CallOptions {
  /** The first and the last time of a decision; as text also a day in UTC, such as `2026-11-27`. */
  readonly from?: Date | string | undefined;
  readonly to?: Date | string | undefined;
  /** Default: `json`. */
  readonly format?: 'json' | 'csv' | undefined;
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
   * @typeParam T the type of the values of `outputSchema`, which the service checks and the client does not
   * @throws {InvalidError | NotFoundError | ConflictError | TooManyRequestsError}
   */
  async start<T = JsonOutput>({ blueprint, idempotencyKey, signal, ...request }: StartOptions): Promise<Run<T>> {
    const council = typeof blueprint === 'string' ? blueprint : blueprint?.id;
    const path = council === undefined ? pathOf('councils', 'run') : pathOf('councils', council, 'run');
    return await this.#start(path, requestOf(request), { idempotencyKey, signal });
  }

  /** Starts a run of a blueprint that is not saved, with the offline model at each node. */
  tryBlueprint<T = JsonOutput>({ blueprint, idempotencyKey, signal, ...request }: TryOptions): Promise<Run<T>> {
    const { name, nodes, edges, entry, approvals, budget, documents, output_schema: outputSchema } = blueprint;
    const { budget: ownBudget, documents: ownDocuments, outputSchema: ownSchema } = request;
    const body = {
      ...requestOf({
        ...request,
        budget: ownBudget ?? budget,
        documents: ownDocuments ?? documents,
        outputSchema: ownSchema ?? outputSchema,
      }),
      name,
      nodes,
      edges,
      entry,
      approvals,
    };
    return this.#start(pathOf('councils', 'try'), body, { idempotencyKey, signal });
  }

  async #start<T>(path: string, body: object, { idempotencyKey, signal }: OnceOptions): Promise<Run<T>> {
    const started = await this.#api.json<RunStart>({
      method: 'POST',
      path,
      headers: { 'Idempotency-Key': idempotencyKey ?? this.#api.system.uuid() },
      isRepeatable: true,
      body,
      signal,
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

  /** The decisions on paused runs as the bytes of a file, in the order of their times. Needs a key with the scope `audit`. */
  async oversight({ from, to, format, signal }: OversightOptions = {}): Promise<Uint8Array> {
    return await bytesOf(await this.#api.open({ path: pathOf('oversight'), query: { from, to, format }, signal }));
  }

  /** What the last completed runs of a saved council, or of the built-in one, have used. */
  estimate({ blueprint, signal }: EstimateOptions = {}): Promise<Estimate> {
    return this.#api.json({ path: pathOf('estimate'), query: { blueprint_id: blueprint }, signal });
  }
}

function requestOf(options: Omit<StartOptions, 'blueprint' | keyof OnceOptions>): RunRequest {
  const { topic, material, documents, outputSchema, godMode, budget, model } = options;
  return {
    input_topic: topic,
    ...(material !== undefined && { material }),
    ...(documents !== undefined && { documents: [...documents] }),
    ...(outputSchema !== undefined && { output_schema: outputSchema }),
    ...(godMode !== undefined && { god_mode: godMode }),
    ...(budget !== undefined && { budget }),
    ...(model !== undefined && { model }),
  };
}

function queryOf({ blueprint, builtIn, parentRun, minScore, maxScore, signal: _, ...same }: RunFilters) {
  const renamed = { blueprint_id: blueprint, built_in: builtIn, parent_run: parentRun };
  return { ...same, ...renamed, min_score: minScore, max_score: maxScore };
}
