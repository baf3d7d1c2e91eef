/** The client's address, from the connection or from a trusted proxy. */
import type { AddressList } from '../../system/addresses.js';
import { addressIn, plainIpv4 } from '../../system/addresses.js';

/** The parts of a request that name its client's address. */
export interface RoutedRequest {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * The client's address. Behind a trusted proxy it is the last address in `X-Forwarded-For` that is not a trusted proxy:
 * the client itself may have written the ones before.
 */
export function clientAddress({ socket, headers }: RoutedRequest, trustedProxies: AddressList): string {
  let client = peerAddress(socket);
  if (!trustedProxies.has(client)) return client;
  for (const text of partsOf(headers['x-forwarded-for']).reverse()) {
    const before = addressIn(text);
    if (before === null) break;
    client = before;
    if (!trustedProxies.has(client)) break;
  }
  return client;
}

/** Whether a trusted proxy received the request over TLS; the service itself has no TLS. */
export function isBehindTls({ socket, headers }: RoutedRequest, trustedProxies: AddressList): boolean {
  const [scheme = ''] = partsOf(headers['x-forwarded-proto']);
  return trustedProxies.has(peerAddress(socket)) && scheme.toLowerCase() === 'https';
}

/** The address of the connection. A closed connection has none; its client reads no answer. */
function peerAddress({ remoteAddress = 'unknown' }: RoutedRequest['socket']): string {
  return plainIpv4(remoteAddress);
}

function partsOf(header: string | string[] | undefined = ''): string[] {
  const text = typeof header === 'string' ? header : header.join(',');
  return text.split(',').map((part) => part.trim());
}
