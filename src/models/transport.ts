/** The connections to providers, direct or through a proxy. */
import type { Dispatcher } from 'undici';
import { Agent, ProxyAgent } from 'undici';
import type { ProxySettings } from '../config-values.js';

/** The client of undici that sends a request to an address. */
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
