/**
 * Checks JSON Schemas that clients send, and values by them. A thread does it, because a schema may make a validator that
 * never ends, and is ended after a second. Why ajv: it is the validator of this service's own schemas.
 */
import { Worker } from 'node:worker_threads';
import type { System } from '../system/system.js';
import { SchemasBusy } from './errors.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A question to the thread: whether a schema can be used, or whether a value is valid by it. */
export interface SchemaTask {
  readonly schema: JsonSchema;
  /** Absent: the schema itself is checked. */
  readonly value?: unknown;
}

/** Largest schema, in bytes of its JSON text. */
const MAX_SCHEMA_BYTES = 32 * 1024;
/** How long the thread may take for a task, in milliseconds. */
const MAX_MS = 1_000;

/** How long a schema waits for its turn, in milliseconds: those before it may be hostile and take a second each. */
const MAX_WAIT_MS = 2_000;

const TOO_SLOW = `its check takes longer than ${MAX_MS} ms`;

export class SchemaChecker {
  readonly #system: Pick<System, 'after'>;
  #thread: Worker | null = null;
  /** Resolves when the thread has done its tasks; it takes one at a time. */
  #idle: Promise<unknown> = Promise.resolve();

  constructor(system: Pick<System, 'after'>) {
    this.#system = system;
  }

  /** Why a schema cannot be used, or null if it can. @throws {SchemasBusy} its turn does not come in time */
  async faultOf(schema: JsonSchema): Promise<string | null> {
    const bytes = Buffer.byteLength(JSON.stringify(schema));
    if (bytes > MAX_SCHEMA_BYTES) return `it has ${bytes} bytes, at most ${MAX_SCHEMA_BYTES} are allowed`;
    const [fault = null] = await this.#inTurn({ schema }, MAX_WAIT_MS);
    return fault;
  }

  /** What is wrong with a value by a schema that can be used; empty if it is valid. */
  errorsOf(schema: JsonSchema, value: unknown): Promise<readonly string[]> {
    return this.#inTurn({ schema, value });
  }

  /** Ends the thread. A later task starts another. */
  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }

  /** @param maxWaitMs how long the task waits for its turn. Default: without a limit */
  #inTurn(task: SchemaTask, maxWaitMs = Infinity): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const tooLate = (): void => {
        isLate = true;
        reject(new SchemasBusy({ maxWaitMs }));
      };
      const cancel = maxWaitMs === Infinity ? null : this.#system.after(maxWaitMs, tooLate);
      this.#idle = this.#idle.then(async () => {
        cancel?.();
        if (!isLate) await this.#ask(task).then(resolve, reject);
      });
    });
  }

  async #ask(task: SchemaTask): Promise<readonly string[]> {
    const thread = (this.#thread ??= await this.#started());
    const answer = answerOf(thread);
    let cancel = (): void => undefined;
    const late = new Promise<readonly string[]>((resolve) => {
      cancel = this.#system.after(MAX_MS, () => {
        this.#thread = null;
        void thread.terminate();
        resolve([TOO_SLOW]);
      });
    });
    thread.postMessage(task);
    return await Promise.race([answer, late]).finally(cancel);
  }

  /** A thread that is ready for tasks: what it takes to load its packages does not count. It does not keep the process alive. */
  async #started(): Promise<Worker> {
    const thread = new Worker(new URL('./worker.js', import.meta.url), { resourceLimits: LIMITS });
    thread.on('error', () => {
      if (this.#thread === thread) this.#thread = null;
    });
    await answerOf(thread);
    thread.unref();
    return thread;
  }
}

/** The next message of a thread. A thread that was too slow may still answer, but no other task. */
function answerOf(thread: Worker): Promise<readonly string[]> {
  return new Promise((resolve) => {
    // A schema may use up the memory of the thread.
    const lost = (): void => resolve(['its check takes too much memory']);
    thread.once('error', lost);
    thread.once('message', (errors: readonly string[]) => {
      thread.off('error', lost);
      resolve(errors);
    });
  });
}

const LIMITS = { maxOldGenerationSizeMb: 128, stackSizeMb: 2 };
