/** The address that a request comes from, as its connection or a trusted proxy says. */
import type { AddressList } from '../system/address-list.js';
import { addressIn, plainIpv4 } from '../system/address-list.js';

/** The parts of a request that name the address it came from. */
export interface RoutedRequest {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * The client's address: that of the connection, unless a trusted proxy made it. Then it is the last one in
 * `X-Forwarded-For` that is no trusted proxy: everything before it is the client's own word.
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

/** Whether the client speaks TLS, as a trusted proxy says; the service itself never does. */
export function isBehindTls({ socket, headers }: RoutedRequest, trustedProxies: AddressList): boolean {
  const [scheme = ''] = partsOf(headers['x-forwarded-proto']);
  return trustedProxies.has(peerAddress(socket)) && scheme.toLowerCase() === 'https';
}

/** Sockets name addresses in one form already. One that is gone has none; nobody reads that answer. */
function peerAddress({ remoteAddress = 'unknown' }: RoutedRequest['socket']): string {
  return plainIpv4(remoteAddress);
}

function partsOf(header: string | string[] | undefined = ''): string[] {
  const text = typeof header === 'string' ? header : header.join(',');
  return text.split(',').map((part) => part.trim());
}
