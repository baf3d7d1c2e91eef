/** Calls to a worker thread, which answers one after the other: client and server. */
import type { MessagePort } from 'node:worker_threads';
import { Worker } from 'node:worker_threads';
import { ServiceStopping } from '../errors.js';
import { fieldOf, reasonOf } from './untrusted.js';

/** A function that can be called from another thread: its arguments and its result are cloned. */
type Callable = (...given: never[]) => unknown;

/** The names of the members of an API that can be called. */
type Called<Api> = { [Name in keyof Api]: Api[Name] extends Callable ? Name : never }[keyof Api] & string;

type Given<Member> = Parameters<Extract<Member, Callable>>;
type Result<Member> = ReturnType<Extract<Member, Callable>>;

/** A call with its number; number 0 is the thread's message that it is ready. */
interface Call {
  readonly id: number;
  readonly name: string;
  readonly given: readonly unknown[];
}

/** `value` has the type that its caller expects; the compiler cannot check it across threads. */
type Answer =
  | { readonly id: number; readonly ok: true; readonly value: never }
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: unknown };

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** An error that a call threw in the thread. */
export class CallFailed extends Error {
  /** The message of the thrown error. */
  readonly reason: string;
  /** Its `code`, if it has one. */
  readonly code: unknown;
  /** @param what names the thread in the message */
  constructor(what: string, { message, code }: { readonly message: string; readonly code: unknown }) {
    super(`${what} failed: ${message}`);
    this.reason = message;
    this.code = code;
  }
}

/** The client; it owns the thread. `Ready` is the thread's first message, `Api` what it serves. */
export class WorkerRpc<Ready, Api extends { close(): unknown }> {
  readonly #thread: Worker;
  readonly #what: string;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;
  #resolveStopped: (error: Error) => void = () => undefined;
  #resolveExited: () => void = () => undefined;
  readonly #exited = new Promise<void>((resolve) => (this.#resolveExited = resolve));
  /** Resolves with the reason when the thread has stopped, also after `close`. */
  readonly stopped = new Promise<Error>((resolve) => (this.#resolveStopped = resolve));

  /**
   * Starts the thread.
   *
   * @param workerData cloned into the thread
   * @param what names the thread in errors
   */
  constructor(module: URL, workerData: unknown, what: string) {
    const thread = new Worker(module, { workerData });
    this.#thread = thread;
    this.#what = what;
    thread.on('message', (answer) => this.#onAnswer(answer as Answer));
    thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    thread.on('exit', () => {
      this.#resolveExited();
      const isClosed = this.#closed !== null;
      this.#fail(isClosed ? new ServiceStopping() : new Error(`${what} has stopped: its thread has ended`));
    });
  }

  /** Resolves with the thread's first message; rejects if it fails. Call it at once. */
  ready(): Promise<Ready> {
    return this.#answerOf(0);
  }

  /**
   * Calls a member of the API in the thread. Rejects with CallFailed if it throws, with ServiceStopping if this client
   * was closed, or with the reason why the thread has stopped.
   */
  call<Name extends Called<Api>>(name: Name, ...given: Given<Api[Name]>): Promise<Result<Api[Name]>> {
    return this.#call(name, given);
  }

  /**
   * Calls `close` in the thread and resolves once the thread has ended. May be called twice. The thread ends by itself:
   * terminating one that runs native code can crash the process.
   */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    try {
      if (this.#failure === null) await this.#call('close', []);
    } finally {
      await this.#exited;
    }
  }

  #call<T>(name: string, given: readonly unknown[]): Promise<T> {
    this.#lastId += 1;
    const answered = this.#answerOf<T>(this.#lastId);
    this.#thread.postMessage({ id: this.#lastId, name, given } satisfies Call);
    return answered;
  }

  #answerOf<T>(id: number): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #onAnswer(answer: Answer): void {
    const caller = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.ok) caller?.resolve(answer.value);
    else caller?.reject(new CallFailed(this.#what, answer));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#resolveStopped(error);
    for (const caller of this.#waiting.values()) caller.reject(error);
    this.#waiting.clear();
  }
}

/** The server in the thread: reports that it is ready, then answers calls until `close`. */
export function serveRpc(
  port: MessagePort,
  { ready, api }: { readonly ready: unknown; readonly api: { close(): unknown } },
): void {
  port.on('message', (call: Call) => {
    // The thread ends when its port is closed.
    if (call.name === 'close') port.removeAllListeners('message');
    port.postMessage(answered(call, api));
    if (call.name === 'close') port.close();
  });
  port.postMessage({ id: 0, ok: true, value: ready });
}

function answered({ id, name, given }: Call, api: object): object {
  try {
    const member: unknown = Reflect.get(api, name);
    if (typeof member !== 'function') throw new Error(`There is no "${name}" to call`);
    const value: unknown = Reflect.apply(member, api, given);
    return { id, ok: true, value };
  } catch (error) {
    const message = reasonOf(error);
    return { id, ok: false, message, code: fieldOf(error, 'code') };
  }
}
