/** Responses that count their unsent bytes. Every answer of the service is written to one, by Koa or without it. */
import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { SharedBytes } from '../system/async/shared-bytes.js';
import type { System } from '../system/system.js';

/** Interval at which the service checks whether a client takes unsent bytes, in milliseconds. */
const CHECK_MS = 15_000;
/** Checks in a row without a taken byte after which the service ends the answer. */
const MAX_STALLED_CHECKS = 4;

export interface CountingDeps {
  readonly system: Pick<System, 'after'>;
  /** The limit of unsent bytes that all clients share. */
  readonly unsent: Pick<SharedBytes, 'update' | 'forget'>;
}

/** Listeners for each event of a response; Node warns of more. Koa and the routes add 11 to an event stream. */
const MAX_LISTENERS = 20;

type Written = (error: Error | null | undefined) => void;

/**
 * The class of responses for `http.createServer`. A response ends when all clients together have too many unsent bytes and
 * it has the most, and when its client has taken nothing for 60 s.
 */
export function countedResponse({ system, unsent }: CountingDeps): typeof ServerResponse {
  return class CountedResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
    readonly #holder = { bytes: () => this.writableLength, cutOff: () => void this.destroy() };
    #cancelCheck: (() => void) | null = null;

    constructor(request: Request) {
      super(request);
      this.setMaxListeners(MAX_LISTENERS);
      // All of the answer is written: `end` does not call `write`.
      this.on('prefinish', () => this.#count());
      this.once('close', () => {
        this.#cancelCheck?.();
        unsent.forget(this.#holder);
      });
    }

    override write(chunk: unknown, encoding?: BufferEncoding | Written, onWritten?: Written): boolean {
      const isTaken =
        typeof encoding === 'string' ? super.write(chunk, encoding, onWritten) : super.write(chunk, encoding);
      this.#count();
      return isTaken;
    }

    #count(): void {
      if (this.writableLength === 0 || this.destroyed) return;
      if (this.#cancelCheck === null) this.#checkLater(this.#takenBytes, 0);
      unsent.update(this.#holder);
    }

    #checkLater(takenBefore: number, stalledChecks: number): void {
      this.#cancelCheck = system.after(CHECK_MS, () => {
        this.#cancelCheck = null;
        if (this.writableLength === 0) return;
        const taken = this.#takenBytes;
        const stalled = taken === takenBefore ? stalledChecks + 1 : 0;
        if (stalled >= MAX_STALLED_CHECKS) this.destroy();
        else this.#checkLater(taken, stalled);
      });
    }

    /** Bytes that the operating system has accepted on this connection. */
    get #takenBytes(): number {
      return (this.socket?.bytesWritten ?? 0) - (this.socket?.writableLength ?? 0);
    }
  };
}
