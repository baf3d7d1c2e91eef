/** Runs: start one, find them. */
import type {
  Blueprint,
  BlueprintCreate,
  HistoryQuery,
  HistoryRecord,
  RunRequest,
  RunStart,
} from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';
import { Run } from './run.js';

export interface StartOptions extends CallOptions {
  /** What the council deliberates on. */
  readonly topic: string;
  /** A saved council, or its id. Default: the built-in one. */
  readonly blueprint?: string | Pick<Blueprint, 'id'> | null | undefined;
  /** Pause before each node for a human. Default: false. */
  readonly godMode?: boolean | undefined;
  /** Starts with the same key start one run. Default: a new key. */
  readonly idempotencyKey?: string | undefined;
}

/** An unsaved council, and the topic to try it on. */
export interface TryOptions extends Omit<StartOptions, 'blueprint'> {
  readonly blueprint: Omit<BlueprintCreate, 'id' | 'name'> & { readonly name?: string | undefined };
}

type OnceOptions = Pick<StartOptions, 'idempotencyKey' | 'signal'>;

/** Which runs are wanted; absent filters do not restrict. */
export interface RunFilters extends CallOptions {
  readonly status?: HistoryQuery['status'] | undefined;
  /** A blueprint's id. */
  readonly blueprint?: string | undefined;
  /** Name of the key that started them. */
  readonly actor?: string | undefined;
  /** Created then or later; as text a day may be named, in UTC. */
  readonly from?: Date | string | undefined;
  /** Created then or before; a day is included. */
  readonly to?: Date | string | undefined;
  /** Words that the topic and the final draft hold together. */
  readonly q?: string | undefined;
  readonly minScore?: number | undefined;
  readonly maxScore?: number | undefined;
  /** The run they are forks of. */
  readonly parent?: string | undefined;
  /** Default: `-created_at`, newest first. */
  readonly sort?: HistoryQuery['sort'] | undefined;
  /** Runs a page. Default: the service's. */
  readonly limit?: number | undefined;
}

export class Runs {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Starts one run, also where an answer is lost and the start is sent again. Resolves once the run is recorded. */
  async start({ topic, blueprint, godMode, ...options }: StartOptions): Promise<Run> {
    const council = typeof blueprint === 'string' ? blueprint : blueprint?.id;
    const path = council === undefined ? pathOf('councils', 'run') : pathOf('councils', council, 'run');
    return await this.#start(path, requestOf(topic, godMode), options);
  }

  /** Starts a run of a council that is not saved, with the offline model at each node: no language model is asked. */
  tryBlueprint({ topic, blueprint: { name, nodes, edges, approvals }, godMode, ...options }: TryOptions): Promise<Run> {
    const body = { ...requestOf(topic, godMode), name, nodes, edges, approvals };
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

  /** How many there are. */
  async count(filters: Omit<RunFilters, 'limit' | 'sort'> = {}): Promise<number> {
    const query = { ...queryOf(filters), limit: 1, count: 1 };
    const { headers } = await this.#api.reply({ path: pathOf('runs'), query, signal: filters.signal });
    return Number(headers.get('Total-Count'));
  }
}

function requestOf(topic: string, godMode: boolean | undefined): RunRequest {
  return { input_topic: topic, ...(godMode !== undefined && { god_mode: godMode }) };
}

function queryOf({ status, blueprint, actor, from, to, q, minScore, maxScore, parent, sort, limit }: RunFilters) {
  const score = { min_score: minScore, max_score: maxScore };
  return { status, blueprint_id: blueprint, actor, from, to, q, ...score, parent, sort, limit };
}
