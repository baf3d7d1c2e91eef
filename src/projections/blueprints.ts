/** The saved councils as a list. */
import type { Blueprint } from '../generated/schemas.js';
import type { EventLog } from '../log/port.js';
import type { History } from './history.js';
import type { Projector } from './projector.js';
import type { Page } from './run-summary.js';

export interface BlueprintQueriesOptions {
  readonly log: EventLog;
  readonly history: Pick<History, 'blueprints'>;
  readonly projector: Pick<Projector, 'reached'>;
}

export class BlueprintQueries {
  readonly #options: BlueprintQueriesOptions;

  constructor(options: BlueprintQueriesOptions) {
    this.#options = options;
  }

  /** A page of them, newest update first, ties by id ascending; everything recorded before the call is in it. */
  async list(page: Page): Promise<readonly Blueprint[]> {
    const { log, history, projector } = this.#options;
    await projector.reached(await log.head());
    return await history.blueprints(page);
  }
}
