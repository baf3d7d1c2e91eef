/** BatchAppend calls of the server: each carries any number of appends, and their answers in any order. */
import { elementAt } from '../../system/element.js';
import type { System } from '../../system/system.js';
import type { AppendStream, Clients } from './clients.js';
import type { AppendAnswer, SentAppend } from './streams-service.js';

/**
 * Calls that take the appends in turn. gRPC's client sends one message of a call in each turn of the loop, so with one call a
 * busy instance sends its appends one turn after the other. Further calls take more of the 100 that a socket has.
 */
const CALLS = 16;

export interface AppendCallsOptions {
  readonly clients: Clients;
  readonly system: Pick<System, 'after'>;
  /** How long an append waits for its answer, in milliseconds. */
  readonly deadlineMs: number;
}

interface Waiting {
  readonly resolve: (answer: AppendAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly cancelTimer: () => void;
}

interface Call {
  readonly stream: Promise<AppendStream>;
  readonly release: () => void;
}

export class AppendCalls {
  readonly #options: AppendCallsOptions;
  readonly #calls: readonly Call[];
  /** Appends without an answer, by id. */
  readonly #waiting = new Map<number, Waiting>();
  /** Answers that arrived in this turn. */
  readonly #answers: AppendAnswer[] = [];
  #sent = 0;
  #isRetired = false;
  #end: { readonly reason: unknown } | null = null;

  /** Opens the calls; finding the node and opening them count towards the deadlines of the appends. */
  constructor(options: AppendCallsOptions) {
    this.#options = options;
    this.#calls = Array.from({ length: CALLS }, () => this.#opened());
  }

  /**
   * Sends an append and resolves with the server's answer.
   *
   * @throws {Error} a call has ended, or no answer has come within the deadline: the append may be written
   */
  send(request: Omit<SentAppend, 'id'>): Promise<AppendAnswer> {
    const { system, deadlineMs } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#end !== null) return reject(this.#end.reason);
      const id = (this.#sent += 1);
      const onLate = (): void => this.#settle(id)?.reject(new Error(`No answer within ${deadlineMs} ms`));
      this.#waiting.set(id, { resolve, reject, cancelTimer: system.after(deadlineMs, onLate) });
      const write = (stream: AppendStream): void => {
        if (this.#end === null) stream.write({ id, ...request });
      };
      elementAt(this.#calls, id % CALLS).stream.then(write, () => undefined);
    });
  }

  /** Ends the calls once the last append on them has its answer or is late. No append may follow. */
  retire(): void {
    this.#isRetired = true;
    if (this.#waiting.size === 0) this.#ended(new Error('The calls were retired'));
  }

  #opened(): Call {
    const { client, release } = this.#options.clients.borrow();
    const stream = client.openAppends();
    stream.then(
      (opened) => this.#listen(opened),
      (error: unknown) => this.#ended(error),
    );
    return { stream, release };
  }

  #listen(stream: AppendStream): void {
    stream
      .on('error', (error) => this.#ended(error))
      .on('end', () => this.#ended(new Error('The server ended the call')))
      .on('data', (answer: AppendAnswer) => this.#answered(answer));
    if (this.#end !== null) stream.cancel();
  }

  /** Settles the appends that are answered in the same turn together: their runs then do the same work one after the other. */
  #answered(answer: AppendAnswer): void {
    if (this.#answers.push(answer) > 1) return;
    setImmediate(() => {
      for (const each of this.#answers.splice(0)) this.#settle(each.id)?.resolve(each);
    });
  }

  /** Returns the append that waits under this id, which waits no more, or null if it was late. */
  #settle(id: number): Waiting | null {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return null;
    this.#waiting.delete(id);
    waiting.cancelTimer();
    if (this.#isRetired) this.retire();
    return waiting;
  }

  /** Ends all calls when one ends: they share a connection, and their appends the way to find out the outcome. */
  #ended(reason: unknown): void {
    if (this.#end !== null) return;
    this.#end = { reason };
    for (const { stream, release } of this.#calls) {
      release();
      stream.then((opened) => opened.cancel()).catch(() => undefined);
    }
    for (const { reject, cancelTimer } of this.#waiting.values()) {
      cancelTimer();
      reject(reason);
    }
    this.#waiting.clear();
  }
}
