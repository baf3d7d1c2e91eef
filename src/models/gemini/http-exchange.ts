/**
 * Observes the HTTP exchange of a call made through global fetch by an SDK that hides response headers and the reason
 * of a lost connection. Node's diagnostics channels report both (undici, "Diagnostics Channel"); wrapping the global
 * fetch would affect the whole process. Without the channels calls still work, with less known about their failures.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { System } from '../../system/system.js';
import { fieldOf } from '../../system/untrusted.js';

/** What has been observed of one call. */
export interface Exchange {
  /** Value of the answer's header `Retry-After`, null without one. */
  retryAfter: string | null;
  /** Code of the system error that broke the connection, null while none did. */
  brokenBy: string | null;
  /** Whether the answer was a redirect. It is not followed: the SDK would send the key to its target. */
  redirected: boolean;
  /** Whether the answer was larger than allowed; reading stops then. */
  tooLarge: boolean;
}

/** An exchange of which nothing is known yet. */
export function unwatched(): Exchange {
  return { retryAfter: null, brokenBy: null, redirected: false, tooLarge: false };
}

export interface WatchOptions {
  readonly system: Pick<System, 'after'>;
  /** Largest answer in bytes on the wire, checked every CHECK_EVERY_MS milliseconds. */
  readonly maxBytes: number;
}

const CHECK_EVERY_MS = 25;

/** Makes a call, which the watch may abort by the signal, and records what it observes in `exchange`. */
export type Watch = <T>(exchange: Exchange, call: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** A watch for any number of concurrent calls: each observes its own requests only. */
export function exchangeWatch({ system, maxBytes }: WatchOptions): Watch {
  const currentExchange = new AsyncLocalStorage<Exchange>();
  return async (exchange, call) => {
    const own = new WeakSet();
    const givenUp = new AbortController();
    const received: (() => number)[] = [];
    const listeners = {
      'undici:request:create': (message: unknown): void => {
        const request = fieldOf(message, 'request');
        if (currentExchange.getStore() === exchange && isObject(request)) own.add(request);
      },
      'undici:client:sendHeaders': (message: unknown): void => {
        const request = fieldOf(message, 'request');
        const socket = fieldOf(message, 'socket');
        if (!isObject(request) || !own.has(request)) return;
        const from = Number(fieldOf(socket, 'bytesRead'));
        received.push(() => Number(fieldOf(socket, 'bytesRead')) - from);
      },
      'undici:request:headers': (message: unknown): void => {
        const request = fieldOf(message, 'request');
        if (!isObject(request) || !own.has(request)) return;
        const response = fieldOf(message, 'response');
        exchange.retryAfter = headerOf(fieldOf(response, 'headers'), 'retry-after');
        exchange.redirected = REDIRECTS.has(fieldOf(response, 'statusCode'));
        if (exchange.redirected) givenUp.abort();
      },
      'undici:request:error': (message: unknown): void => {
        const request = fieldOf(message, 'request');
        const code = fieldOf(fieldOf(message, 'error'), 'code');
        if (isObject(request) && own.has(request) && typeof code === 'string') exchange.brokenBy = code;
      },
    };
    let cancelCheck = (): void => undefined;
    const checkSize = (): void => {
      exchange.tooLarge = received.some((bytes) => bytes() > maxBytes);
      if (exchange.tooLarge) givenUp.abort();
      else cancelCheck = system.after(CHECK_EVERY_MS, checkSize);
    };
    for (const [channel, listener] of Object.entries(listeners)) subscribe(channel, listener);
    checkSize();
    try {
      return await currentExchange.run(exchange, () => call(givenUp.signal));
    } finally {
      cancelCheck();
      for (const [channel, listener] of Object.entries(listeners)) unsubscribe(channel, listener);
    }
  };
}

/** A header in a raw list: name, value, name, value, each as bytes. */
function headerOf(headers: unknown, wanted: string): string | null {
  if (!Array.isArray(headers)) return null;
  const texts = headers.map(String);
  const at = texts.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === wanted);
  return at < 0 ? null : (texts[at + 1] ?? null);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Those that fetch follows (Fetch standard, "redirect status"). */
const REDIRECTS: ReadonlySet<unknown> = new Set([301, 302, 303, 307, 308]);
