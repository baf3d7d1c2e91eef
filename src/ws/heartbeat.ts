/** Pings that find dead connections. */
import type { WebSocket } from 'ws';
import type { System } from '../system/system.js';

/** Time between pings in milliseconds. */
const PING_MS = 20_000;
/** Pings without an answer after which a connection counts as dead. */
const MAX_MISSED_PONGS = 2;

/** Pings sockets and terminates those that do not answer. */
export class Heartbeat {
  readonly #system: Pick<System, 'after'>;
  /** Unanswered pings by socket. */
  readonly #missed = new Map<WebSocket, number>();
  #cancel: () => void;

  constructor(system: Pick<System, 'after'>) {
    this.#system = system;
    this.#cancel = system.after(PING_MS, () => this.#beat());
  }

  watch(client: WebSocket): void {
    client.on('pong', () => this.#missed.set(client, 0));
    client.on('close', () => this.#missed.delete(client));
    this.#missed.set(client, 0);
  }

  stop(): void {
    this.#cancel();
  }

  #beat(): void {
    for (const [client, count] of this.#missed) {
      if (count >= MAX_MISSED_PONGS) {
        client.terminate();
      } else {
        this.#missed.set(client, count + 1);
        client.ping();
      }
    }
    this.#cancel = this.#system.after(PING_MS, () => this.#beat());
  }
}
