/** The secret of a log, without which no client can compute the id of a run from its Idempotency-Key. */
import { RevisionConflict } from '../eventlog/errors.js';
import { appendFacts } from '../eventsourcing/aggregate.js';
import { TaskTracker } from '../system/async/tasks.js';
import { SECRET_STREAM, secretEventReader } from './events.js';
import type { PassDeps } from './pass-streams.js';

/**
 * The secret is one event of a stream of its own, so that all instances have the same and a restored copy of the log keeps it. No
 * route, feed or export reads this stream.
 */
export class IdSecret {
  readonly #deps: PassDeps;
  readonly #tasks = new TaskTracker();
  #secret: Promise<string> | null = null;

  constructor(deps: PassDeps) {
    this.#deps = deps;
  }

  /**
   * The secret, 43 characters. The first call on a log records it; of several instances the first append wins.
   *
   * @throws {KeysCorrupt | LogUnavailable} and any error of an append; the next call tries again
   */
  async read(): Promise<string> {
    this.#secret ??= this.#tasks.track(this.#recorded());
    try {
      return await this.#secret;
    } catch (error) {
      this.#secret = null;
      throw error;
    }
  }

  /** Waits until the log has answered the append in flight. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  async #recorded(): Promise<string> {
    const found = await this.#find();
    if (found !== null) return found;
    const secret = this.#deps.system.secret();
    const facts = [{ type: 'SecretCreated', data: { secret } }];
    try {
      await appendFacts(this.#deps, { stream: SECRET_STREAM, subject: 'ids', head: null, facts }, this.#tasks.signal);
      return secret;
    } catch (error) {
      const first = error instanceof RevisionConflict ? await this.#find() : null;
      if (first === null) throw error;
      return first;
    }
  }

  async #find(): Promise<string | null> {
    const { log, system } = this.#deps;
    for await (const { data } of secretEventReader.read(log, SECRET_STREAM, { sha256: system.sha256, max: 1 }))
      return data.secret;
    return null;
  }
}
