/** The HTTP connections to providers. */
import type { Dispatcher } from 'undici';
import { Agent, EnvHttpProxyAgent } from 'undici';
import type { ProxySettings } from '../config.js';

/** Time to connect, in milliseconds. The time for an answer is the caller's, by its signal. */
const CONNECT_TIMEOUT_MS = 10_000;

export const NO_PROXIES: ProxySettings = { http: null, https: null, none: '' };

/** A pool of connections that are kept alive; through the proxies, if there are any. */
export function modelTransport({ http, https, none }: ProxySettings): Dispatcher {
  const options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT_MS } };
  if (http === null && https === null) return new Agent(options);
  // An empty text keeps the package from reading the environment.
  return new EnvHttpProxyAgent({ ...options, httpProxy: http ?? '', httpsProxy: https ?? '', noProxy: none });
}
