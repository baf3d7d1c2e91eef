/** Calls to a worker thread, which answers one after the other: client and server. */
import type { MessagePort, Worker } from 'node:worker_threads';

interface NamedCall {
  readonly call: string;
}

/** A call with its number; number 0 is the thread's message that it is ready. */
type Numbered<Call> = Call & { readonly id: number };

type Answer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string };

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The client, which owns the worker. */
export class WorkerRpc<Call extends NamedCall> {
  readonly #worker: Worker;
  readonly #what: string;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;
  #resolveStopped: (error: Error) => void = () => undefined;
  /** Resolves once the thread has stopped, by its close too, with why. */
  readonly stopped = new Promise<Error>((resolve) => (this.#resolveStopped = resolve));

  /** @param what runs there, as errors name it */
  constructor(worker: Worker, what: string) {
    this.#worker = worker;
    this.#what = what;
    worker.on('message', (answer: Answer) => this.#onAnswer(answer));
    worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => this.#fail(new Error(`${what} has stopped: its thread has ended`)));
  }

  /** Resolves with the value that the thread sends once it is ready; rejects when it fails. To be called at once. */
  ready(): Promise<unknown> {
    return this.#answerOf(0);
  }

  /** Rejects with what the thread throws, or once it has stopped. */
  call(call: Call): Promise<unknown> {
    this.#lastId += 1;
    const answered = this.#answerOf(this.#lastId);
    this.#worker.postMessage({ ...call, id: this.#lastId } satisfies Numbered<Call>);
    return answered;
  }

  /** Makes a last call and ends the thread. May be called twice. */
  close(last: Call): Promise<void> {
    return (this.#closed ??= this.#close(last));
  }

  async #close(last: Call): Promise<void> {
    if (this.#failure !== null) return;
    await this.call(last);
    await this.#worker.terminate();
  }

  #answerOf(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      this.#waiting.set(id, { resolve, reject });
    });
  }

  #onAnswer(answer: Answer): void {
    const caller = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.ok) caller?.resolve(answer.value);
    else caller?.reject(new Error(`${this.#what} failed: ${answer.message}`));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#resolveStopped(error);
    for (const caller of this.#waiting.values()) caller.reject(error);
    this.#waiting.clear();
  }
}

/** The server in the thread: reports that it is ready, then answers each call until the one named `close`. */
export function serveRpc(
  port: MessagePort | null,
  { ready, answerTo }: { readonly ready: unknown; readonly answerTo: (call: NamedCall) => unknown },
): void {
  if (port === null) throw new Error('This runs as a worker thread only');
  port.on('message', (call: Numbered<NamedCall>) => {
    port.postMessage(answered(call, answerTo));
    if (call.call === 'close') port.close();
  });
  port.postMessage({ id: 0, ok: true, value: ready } satisfies Answer);
}

function answered(call: Numbered<NamedCall>, answerTo: (call: NamedCall) => unknown): Answer {
  try {
    return { id: call.id, ok: true, value: answerTo(call) };
  } catch (error) {
    return { id: call.id, ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}
