/** The saved councils, page by page, newest update first. */
import { computed, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import { NotFoundError } from '../../../client/errors.js';
import type { Blueprint } from '../../../generated/schemas.js';

/** How many the service gives at once. */
const PAGE = 1_000;

export class BlueprintList {
  readonly records = signal<readonly Blueprint[]>([]);
  readonly isLoading = signal(false);
  /** Whether the service has no more than these. */
  readonly isWhole = signal(false);
  readonly error = signal<unknown>(null);
  readonly isEmpty = computed(() => this.isWhole.value && this.records.value.length === 0);
  readonly #council: Pick<CouncilClient, 'blueprints'>;
  #pages: AsyncIterator<readonly Blueprint[]>;

  constructor(council: Pick<CouncilClient, 'blueprints'>) {
    this.#council = council;
    this.#pages = this.#fromTheFirst();
  }

  /** Reads the next page; after a failure it begins anew. */
  async more(): Promise<void> {
    if (this.isLoading.value || this.isWhole.value) return;
    this.isLoading.value = true;
    try {
      const page = await this.#pages.next();
      if (page.done !== true) this.#add(page.value);
      this.isWhole.value = page.done === true || page.value.length < PAGE;
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
      this.#pages = this.#fromTheFirst();
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Deletes one as it is shown, and no later state of it. @throws {Error} it has changed since, which is shown */
  async remove({ id, version }: Blueprint): Promise<void> {
    const { blueprints } = this.#council;
    try {
      const { etag, ...now } = await blueprints.get(id);
      if (now.version !== version) {
        this.records.value = this.records.value.map((each) => (each.id === id ? now : each));
        throw new Error(`“${now.name}” was changed meanwhile, and is not deleted.`);
      }
      await blueprints.delete(id, { ifMatch: etag });
    } catch (error) {
      // Somebody else was faster.
      if (!(error instanceof NotFoundError)) throw error;
    }
    this.records.value = this.records.value.filter((each) => each.id !== id);
  }

  #fromTheFirst(): AsyncIterator<readonly Blueprint[]> {
    return this.#council.blueprints.list().pages()[Symbol.asyncIterator]();
  }

  /** One that was saved while the list was read may come twice. */
  #add(found: readonly Blueprint[]): void {
    const ids = new Set(found.map(({ id }) => id));
    this.records.value = [...this.records.value.filter(({ id }) => !ids.has(id)), ...found];
  }
}
