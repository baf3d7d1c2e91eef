/** What clients ask of runs: each answer true at once, whoever runs the run and however far the read models are. */
import type { ExportedEvent } from '../log/chain.js';
import type { EventLog } from '../log/port.js';
import { runStream } from '../run/events.js';
import type { RunState } from '../run/state.js';
import type { History } from './history.js';
import type { Projector } from './projector.js';
import type { RunReader } from './run-reader.js';
import type { Page, RunSummary } from './run-summary.js';
import { summaryOf } from './run-summary.js';

export interface EventsPage {
  readonly events: readonly ExportedEvent[];
  /** Revision to go on from; null at the head. */
  readonly next: number | null;
}

export interface RunQueriesOptions {
  readonly log: EventLog;
  readonly reader: RunReader;
  readonly history: History;
  readonly projector: Projector;
  /** The run as its actor holds it, when it runs here. */
  readonly live: (runId: string) => RunState | null;
}

export class RunQueries {
  readonly #options: RunQueriesOptions;

  constructor(options: RunQueriesOptions) {
    this.#options = options;
  }

  /** One run: from its actor while it runs here, from the history once it has ended, else folded from its stream. */
  async find(runId: string): Promise<RunSummary | null> {
    const { reader, history, live } = this.#options;
    const running = live(runId);
    if (running !== null) return summaryOf(running);
    const stored = await history.find(runId);
    if (stored !== null && stored.completedAt !== null) return stored;
    const run = await reader.fold(runId);
    return run === null ? null : summaryOf(run);
  }

  /** One run with all that its events tell: from its actor while it runs here, else folded from its stream. */
  async state(runId: string): Promise<RunState | null> {
    const { reader, live } = this.#options;
    return live(runId) ?? (await reader.fold(runId));
  }

  /** A page of the history, newest first; everything recorded before the call is in it. */
  async list(page: Page): Promise<readonly RunSummary[]> {
    const { log, history, projector } = this.#options;
    await projector.reached(await log.head());
    return await history.list(page);
  }

  /** A page of a run's events as they are stored, from a revision on; null when there is no such run. */
  async events(
    runId: string,
    { from, limit }: { readonly from: number; readonly limit: number },
  ): Promise<EventsPage | null> {
    const { reader } = this.#options;
    const events: ExportedEvent[] = [];
    for await (const event of reader.events(runId, { from, max: limit + 1 })) events.push(event);
    if (events.length === 0 && (from === 0 || !(await this.#exists(runId)))) return null;
    const next = events.length > limit ? from + limit : null;
    return { events: events.slice(0, limit), next };
  }

  async #exists(runId: string): Promise<boolean> {
    for await (const _ of this.#options.log.readStream(runStream(runId), { max: 1 })) return true;
    return false;
  }
}
