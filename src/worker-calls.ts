/** Calls to a worker thread, which answers one after the other: both ends of the line. */
import type { MessagePort, Worker } from 'node:worker_threads';

/** A call under its number; number 0 is the thread's word that it is ready. */
interface Call {
  readonly id: number;
  readonly method: string;
  readonly parameters: readonly unknown[];
}

/** What a thread tells when it is ready: the names of its service's methods, and whatever else it has to say. */
interface Ready {
  readonly methods: readonly string[];
  readonly told: unknown;
}

type Answer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string };

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A service in another thread: its methods, whose answers are awaited here. Arguments and answers are cloned on the way.
 * `close` is its caller's: WorkerCalls.close.
 */
export type Remote<Service> = {
  readonly [
    Name in keyof Service as Name extends 'close'
      ? never
      : Service[Name] extends (...parameters: never[]) => unknown
        ? Name
        : never
  ]: Service[Name] extends (...parameters: infer Parameters) => infer Value
    ? (...parameters: Parameters) => Promise<Value>
    : never;
};

/** The caller's end. It owns the worker, whose thread serves what the type says, and tells `Told` when it is ready. */
export class WorkerCalls<Service extends { close(): void }, Told> {
  readonly #worker: Worker;
  readonly #what: string;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;
  #tellStopped: (error: Error) => void = () => undefined;
  /** Resolves once the thread has stopped, by its close too, with why. */
  readonly stopped = new Promise<Error>((resolve) => (this.#tellStopped = resolve));

  /** @param what runs there, as errors name it */
  constructor(worker: Worker, what: string) {
    this.#worker = worker;
    this.#what = what;
    worker.on('message', (answer: Answer) => this.#hear(answer));
    worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => this.#fail(new Error(`${what} has stopped: its thread has ended`)));
  }

  /**
   * The service, once the thread is ready, and what it tells of itself then; rejects when it cannot be. Each call rejects
   * with what the thread throws, or once it has stopped. To be asked for at once.
   */
  async ready(): Promise<{ readonly service: Remote<Service>; readonly told: Told }> {
    const { methods, told } = (await this.#answerOf(0)) as Ready;
    const calls = methods.map((method) => [method, (...parameters: unknown[]) => this.#call(method, parameters)]);
    return { service: Object.fromEntries(calls) as Remote<Service>, told: told as Told };
  }

  /** Closes the service and ends the thread. May be called twice. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  #call(method: string, parameters: readonly unknown[]): Promise<unknown> {
    this.#lastId += 1;
    const answered = this.#answerOf(this.#lastId);
    this.#worker.postMessage({ id: this.#lastId, method, parameters } satisfies Call);
    return answered;
  }

  async #close(): Promise<void> {
    if (this.#failure !== null) return;
    await this.#call('close', []);
    await this.#worker.terminate();
  }

  #answerOf(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #hear(answer: Answer): void {
    const caller = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.ok) caller?.resolve(answer.value);
    else caller?.reject(new Error(`${this.#what} failed: ${answer.message}`));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#tellStopped(error);
    for (const caller of this.#waiting.values()) caller.reject(error);
    this.#waiting.clear();
  }
}

/** The thread's end: says that it is ready, then answers the calls of a service's methods until `close`. */
export function serveCalls(
  port: MessagePort | null,
  { service, told }: { readonly service: { close(): void }; readonly told: unknown },
): void {
  if (port === null) throw new Error('This runs as a worker thread only');
  const methods = new Map<string, Method>(Object.entries(service).filter(isMethod));
  port.on('message', (call: Call) => {
    port.postMessage(answered(call, methods));
    if (call.method === 'close') port.close();
  });
  const value: Ready = { methods: [...methods.keys()], told };
  port.postMessage({ id: 0, ok: true, value } satisfies Answer);
}

type Method = (...parameters: readonly unknown[]) => unknown;

function isMethod(entry: [string, unknown]): entry is [string, Method] {
  return typeof entry[1] === 'function';
}

function answered({ id, method, parameters }: Call, methods: ReadonlyMap<string, Method>): Answer {
  try {
    return { id, ok: true, value: methods.get(method)?.(...parameters) };
  } catch (error) {
    return { id, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}
