/** Saved councils. */
import type {
  Blueprint,
  BlueprintCreate,
  BlueprintUpdate,
  BlueprintValidation,
  BlueprintVersion,
  ChartConfig,
  ExampleList,
} from '../generated/schemas.js';
import type { Api, ApiRequest, CallOptions } from './http.js';
import { pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';

export interface ChangeOptions extends CallOptions {
  /** The `etag` with which the blueprint was read. The call fails if the blueprint has changed. Default: no condition. */
  readonly ifMatch?: string | null | undefined;
}

export interface VersionsOptions extends CallOptions {
  /** Versions per page. Default: that of the service. */
  readonly limit?: number | undefined;
}

/** A blueprint and the tag of its version, for `ifMatch`. */
export type TaggedBlueprint = Blueprint & { readonly etag: string | null };

export class Blueprints {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** All blueprints, the last updated first. */
  list({ signal }: CallOptions = {}): Pages<Blueprint> {
    return pagesOf(this.#api, { path: pathOf('councils'), signal });
  }

  /** The example councils of the service, each a draft for `create`. */
  examples({ signal }: CallOptions = {}): Promise<ExampleList> {
    return this.#api.json({ path: pathOf('examples'), signal });
  }

  /** @throws {NotFoundError} */
  get(id: string, { signal }: CallOptions = {}): Promise<TaggedBlueprint> {
    return this.#tagged({ path: pathOf('councils', id), signal });
  }

  /** Saves a new blueprint, also a faulty one: `warnings` names the faults. @throws {ConflictError} the id is taken */
  create(draft: BlueprintCreate, { signal }: CallOptions = {}): Promise<TaggedBlueprint> {
    return this.#tagged({ method: 'POST', path: pathOf('councils'), body: draft, signal });
  }

  /** Changes the given fields. @throws {NotFoundError | PreconditionFailedError} */
  update(id: string, change: BlueprintUpdate, { ifMatch, signal }: ChangeOptions = {}): Promise<TaggedBlueprint> {
    const request = { method: 'PUT', path: pathOf('councils', id), body: change, signal } as const;
    return this.#tagged({ ...request, headers: condition(ifMatch) });
  }

  /** Deletes a blueprint. Its runs stay. @throws {NotFoundError | PreconditionFailedError} */
  async delete(id: string, { ifMatch, signal }: ChangeOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('councils', id), headers: condition(ifMatch), signal });
  }

  /** All versions of a blueprint, also of a deleted one, the newest first. @throws {NotFoundError} */
  versions(id: string, { limit, signal }: VersionsOptions = {}): Pages<BlueprintVersion> {
    return pagesOf(this.#api, { path: pathOf('councils', id, 'versions'), query: { limit }, signal });
  }

  /** The statechart of a run of the blueprint. @throws {ConflictError} it cannot run; `detail` says why */
  chart(id: string, { signal }: CallOptions = {}): Promise<ChartConfig> {
    return this.#api.json({ path: pathOf('councils', id, 'chart'), signal });
  }

  /** The faults and warnings of a blueprint. Saves nothing. */
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
