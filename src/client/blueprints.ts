/** Saved councils. */
import type {
  Blueprint,
  BlueprintCreate,
  BlueprintUpdate,
  BlueprintValidation,
  BlueprintVersion,
  ChartConfig,
} from '../generated/schemas.js';
import type { Api, ApiRequest, CallOptions } from './http.js';
import { pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';

export interface ChangeOptions extends CallOptions {
  /** `etag` of the blueprint as it was read: if it has changed since, the call fails. Default: no condition. */
  readonly ifMatch?: string | null | undefined;
}

export interface VersionsOptions extends CallOptions {
  /** Versions a page. Default: the service's. */
  readonly limit?: number | undefined;
}

/** A blueprint with the tag that names this state of it. */
export type TaggedBlueprint = Blueprint & { readonly etag: string | null };

export class Blueprints {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** All of them, newest update first. */
  list({ signal }: CallOptions = {}): Pages<Blueprint> {
    return pagesOf(this.#api, { path: pathOf('councils'), signal });
  }

  /** @throws {NotFoundError} */
  get(id: string, { signal }: CallOptions = {}): Promise<TaggedBlueprint> {
    return this.#tagged({ path: pathOf('councils', id), signal });
  }

  /** Saves a new one; its `warnings` say what is wrong with it. @throws {ConflictError} its id is taken */
  create(draft: BlueprintCreate, { signal }: CallOptions = {}): Promise<TaggedBlueprint> {
    return this.#tagged({ method: 'POST', path: pathOf('councils'), body: draft, signal });
  }

  /** Changes the fields that are named. @throws {PreconditionFailedError} */
  update(id: string, change: BlueprintUpdate, { ifMatch, signal }: ChangeOptions = {}): Promise<TaggedBlueprint> {
    const request = { method: 'PUT', path: pathOf('councils', id), body: change, signal } as const;
    return this.#tagged({ ...request, headers: condition(ifMatch) });
  }

  /** Deletes it; its runs stay. @throws {PreconditionFailedError} */
  async delete(id: string, { ifMatch, signal }: ChangeOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('councils', id), headers: condition(ifMatch), signal });
  }

  /** Every save of it, whole, newest first; also of one that is deleted. @throws {NotFoundError} */
  versions(id: string, { limit, signal }: VersionsOptions = {}): Pages<BlueprintVersion> {
    return pagesOf(this.#api, { path: pathOf('councils', id, 'versions'), query: { limit }, signal });
  }

  /** The statechart that a run of it would have. @throws {ConflictError} it cannot run; `detail` says why */
  chart(id: string, { signal }: CallOptions = {}): Promise<ChartConfig> {
    return this.#api.json({ path: pathOf('councils', id, 'chart'), signal });
  }

  /** The faults of a blueprint, and warnings about it; nothing is saved. */
  validate(draft: BlueprintCreate, { signal }: CallOptions = {}): Promise<BlueprintValidation> {
    const path = pathOf('councils', 'validate');
    return this.#api.json({ method: 'POST', path, body: draft, signal, isRepeatable: true });
  }

  async #tagged(request: ApiRequest): Promise<TaggedBlueprint> {
    const { value, headers } = await this.#api.reply<Blueprint>(request);
    return { ...value, etag: headers.get('ETag') };
  }
}

function condition(ifMatch: string | null | undefined): Readonly<Record<string, string>> {
  return typeof ifMatch === 'string' ? { 'If-Match': ifMatch } : {};
}
