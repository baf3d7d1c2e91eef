/** The saved blueprints, page by page, latest update first. */
import { computed, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import { NotFoundError } from '../../../client/errors.js';
import type { Blueprint } from '../../../generated/schemas.js';

/** Page size of the service. */
const PAGE = 1_000;

export class BlueprintList {
  readonly records = signal<readonly Blueprint[]>([]);
  readonly isLoading = signal(false);
  /** Whether all pages are loaded. */
  readonly isComplete = signal(false);
  readonly error = signal<unknown>(null);
  readonly isEmpty = computed(() => this.isComplete.value && this.records.value.length === 0);
  readonly #council: Pick<CouncilClient, 'blueprints'>;
  #pages: AsyncIterator<readonly Blueprint[]>;

  constructor(council: Pick<CouncilClient, 'blueprints'>) {
    this.#council = council;
    this.#pages = this.#fromTheFirst();
  }

  /** Reads the next page; after a failure, the first. */
  async more(): Promise<void> {
    if (this.isLoading.value || this.isComplete.value) return;
    this.isLoading.value = true;
    try {
      const page = await this.#pages.next();
      if (page.done !== true) this.#add(page.value);
      this.isComplete.value = page.done === true || page.value.length < PAGE;
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
      this.#pages = this.#fromTheFirst();
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Deletes a blueprint. @throws {Error} it has changed since the list was loaded; the list then shows the change */
  async remove({ id, version }: Blueprint): Promise<void> {
    const { blueprints } = this.#council;
    try {
      const { etag, ...now } = await blueprints.get(id);
      if (now.version !== version) {
        this.records.value = this.records.value.map((each) => (each.id === id ? now : each));
        throw new Error(`“${now.name}” has changed and was not deleted. Check it, then delete it again.`);
      }
      await blueprints.delete(id, { ifMatch: etag });
    } catch (error) {
      // Another user deleted it first.
      if (!(error instanceof NotFoundError)) throw error;
    }
    this.records.value = this.records.value.filter((each) => each.id !== id);
  }

  #fromTheFirst(): AsyncIterator<readonly Blueprint[]> {
    return this.#council.blueprints.list().pages()[Symbol.asyncIterator]();
  }

  /** A blueprint saved while the list loads may come twice. */
  #add(found: readonly Blueprint[]): void {
    const ids = new Set(found.map(({ id }) => id));
    this.records.value = [...this.records.value.filter(({ id }) => !ids.has(id)), ...found];
  }
}
