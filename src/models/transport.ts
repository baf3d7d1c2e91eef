/** HTTP requests to providers over connections that are kept alive. */
import type { Dispatcher } from 'undici';
import { Agent, ProxyAgent, request } from 'undici';
import type { ProxySettings } from '../config-values.js';

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token; 100 vectors are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Most bytes read of the body of an error status. */
const MAX_ERROR_BYTES = 64 * 1024;

/** The client of undici that sends a request. */
export type Transport = (url: URL) => Dispatcher;

/**
 * Pools of connections that are kept alive. `https:` goes through the proxy of HTTPS_PROXY by CONNECT, `http:` through that
 * of HTTP_PROXY as plain requests, because proxies forbid CONNECT to other ports than 443. Connecting may take 10 s,
 * undici's default. Undici's agent for these settings sends `https:` through HTTP_PROXY too, and prints a warning.
 */
export function modelTransport({ http, https, none }: ProxySettings): Transport {
  const direct = new Agent();
  const proxies = new Map<string, Dispatcher>();
  if (http !== null) proxies.set('http:', new ProxyAgent({ uri: http, proxyTunnel: false }));
  if (https !== null) proxies.set('https:', new ProxyAgent(https));
  const exceptions = none.toLowerCase().split(/[\s,]+/);
  return (url) => {
    const proxy = proxies.get(url.protocol);
    return proxy === undefined || exceptions.some((each) => isExcepted(url, each)) ? direct : proxy;
  };
}

/** Whether an entry of NO_PROXY names the host: `*`, or the host or a domain above it, perhaps with the port. */
function isExcepted({ hostname, port, protocol }: URL, entry: string): boolean {
  const name = entry.replace(/^\*?\./, '');
  const withPort = `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
  const names = [hostname, withPort, hostname.replace(/[[\]]/g, '')];
  return name === '*' || (name !== '' && names.some((each) => each === name || each.endsWith(`.${name}`)));
}

/** An answer of which the head has come. */
export interface HttpAnswer {
  readonly status: number;
  readonly isSuccess: boolean;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Destroying it closes the connection, as leaving a loop over it does. Throws undici's errors. */
  readonly body: Dispatcher.ResponseData['body'];
  /** Most bytes to read of the body. */
  readonly maxBytes: number;
}

export interface HttpPost {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Closes the connection, also while the answer comes. */
  readonly signal: AbortSignal;
  readonly transport: Transport;
}

/** Sends a request; follows no redirect. Rejects with undici's errors. */
export async function post(address: string, { transport, ...rest }: HttpPost): Promise<HttpAnswer> {
  const url = new URL(address);
  // The signal alone ends a call: a slow model needs more than undici's 300 s.
  const options = { ...rest, method: 'POST' as const, headersTimeout: 0, bodyTimeout: 0 };
  const { statusCode: status, headers, body } = await request(url, { ...options, dispatcher: transport(url) });
  const isSuccess = status >= 200 && status < 300;
  return { status, isSuccess, headers, body, maxBytes: isSuccess ? MAX_ANSWER_BYTES : MAX_ERROR_BYTES };
}
