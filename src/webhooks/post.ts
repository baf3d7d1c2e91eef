/** Sends one request to a receiver, over a connection of its own, and only to an address that was checked. */
import type { LookupAddress } from 'node:dns';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { orAborted } from '../system/async/deadline.js';

/** The addresses of a host. Rejects if it has none. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface PostRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether it may connect to an address. */
  readonly accepts: (address: string) => boolean;
  /** Ends the request. */
  readonly signal: AbortSignal;
}

export interface PostAnswer {
  readonly status: number;
  /** The header `Retry-After`, or null if there is none. */
  readonly retryAfter: string | null;
}

/** Sends a request. Follows no redirect. Rejects with {AddressRefused} or with why there was no answer. */
export type Post = (request: PostRequest) => Promise<PostAnswer>;

/** A host has an address that a webhook may not have. */
export class AddressRefused extends Error {
  constructor(hostname: string, address: string) {
    super(address === hostname ? `${address} is no public address` : `${hostname} is ${address}, no public address`);
  }
}

/** Most bytes that are read of an answer's body, which has no meaning; then the connection is cut. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** @param resolve finds the addresses of a host anew for each request */
export function httpPost(resolve: Resolve): Post {
  return async ({ url, accepts, signal, ...request }) => {
    const addresses = await orAborted(acceptedAddresses(url, { resolve, accepts }), signal);
    return await sent(url, { ...request, signal, addresses });
  };
}

/** The addresses of a URL's host. @throws {AddressRefused} if one of them is not accepted */
export async function acceptedAddresses(
  { hostname }: URL,
  { resolve, accepts }: { readonly resolve: Resolve; readonly accepts: (address: string) => boolean },
): Promise<readonly LookupAddress[]> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  // A literal address resolves to itself.
  const addresses = await resolve(host);
  for (const { address } of addresses) if (!accepts(address)) throw new AddressRefused(host, address);
  return addresses;
}

interface Sending extends Pick<PostRequest, 'headers' | 'body' | 'signal'> {
  readonly addresses: readonly LookupAddress[];
}

function sent(url: URL, { headers, body, signal, addresses }: Sending): Promise<PostAnswer> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal, agent: false, lookup: pinnedTo(addresses) } as const;
    request(url, options)
      .on('error', reject)
      .on('response', (response) => void drained(response).then(() => resolve(answerOf(response))))
      .end(body);
  });
}

/** A lookup that knows the checked addresses only, so that a name cannot mean another address meanwhile. */
function pinnedTo(addresses: readonly LookupAddress[]): NonNullable<RequestOptions['lookup']> {
  return (hostname, { all }, callback) => {
    const [first] = addresses;
    if (first === undefined) callback(new Error(`${hostname} has no address`), '');
    else if (all === true) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

/** Reads the answer to its end, so that the receiver sees no broken connection; cuts a long one. */
function drained(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  return new Promise((resolve) => response.on('error', () => undefined).on('close', resolve));
}

function answerOf({ statusCode = 0, headers }: IncomingMessage): PostAnswer {
  return { status: statusCode, retryAfter: headers['retry-after'] ?? null };
}
