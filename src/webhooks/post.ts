/** Sends one request to a receiver, over a connection of its own, and only to an address that was checked. */
import type { LookupAddress } from 'node:dns';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { orAborted } from '../system/async/deadline.js';
import type { System } from '../system/system.js';

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

/** Sends a request. Follows no redirect. Rejects with {AddressRefused}, or with the reason why there was no answer. */
export type Post = (request: PostRequest) => Promise<PostAnswer>;

/** A host has an address that a webhook may not have. */
export class AddressRefused extends Error {
  constructor(hostname: string, address: string) {
    super(address === hostname ? `${address} is no public address` : `${hostname} is ${address}, no public address`);
  }
}

/**
 * How much of an answer's body is read, in bytes, and how long the connection stays open after the status, in milliseconds.
 * The body has no meaning, but some receivers report a connection that is cut before they have sent it.
 */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_OPEN_MS = 1_000;
/** Most interim answers, such as 103. Without a limit they would take processor time from runs until the deadline. */
const MAX_INTERIM = 16;

export interface HttpPostDeps {
  /** Called for each request. */
  readonly resolve: Resolve;
  readonly after: System['after'];
}

export function httpPost({ resolve, after }: HttpPostDeps): Post {
  return async ({ url, accepts, signal, ...request }) => {
    const addresses = await orAborted(acceptedAddresses(url, { resolve, accepts }), signal);
    return await sent(url, { ...request, signal, addresses, after });
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
  readonly after: System['after'];
}

function sent(url: URL, { headers, body, signal, addresses, after }: Sending): Promise<PostAnswer> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal, agent: false, lookup: pinnedTo(addresses) } as const;
    const request = send(url, options);
    let interim = 0;
    request
      .on('error', reject)
      .on('information', () => {
        interim += 1;
        if (interim > MAX_INTERIM) request.destroy(new Error('it sent too many interim answers'));
      })
      .on('response', (response) => {
        resolve(answerOf(response));
        drain(response, request, after);
      })
      // Without this listener Node closes the connection and reports nothing.
      .on('upgrade', (response, socket) => {
        resolve(answerOf(response));
        socket.destroy();
      })
      .end(body);
  });
}

/** A lookup that returns only the checked addresses, so that a changed name cannot lead to another address. */
function pinnedTo(addresses: readonly LookupAddress[]): NonNullable<RequestOptions['lookup']> {
  return (hostname, { all }, callback) => {
    const [first] = addresses;
    if (first === undefined) callback(new Error(`${hostname} has no address`), '');
    else if (all === true) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

/** Reads the body of an answer, within limits. The receiver may not have read the request yet. */
function drain(response: IncomingMessage, request: ClientRequest, after: System['after']): void {
  let bytes = 0;
  request.on(
    'close',
    after(MAX_OPEN_MS, () => request.destroy()),
  );
  response
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) request.destroy();
    })
    .on('error', () => undefined);
}

function answerOf({ statusCode = 0, headers }: IncomingMessage): PostAnswer {
  return { status: statusCode, retryAfter: headers['retry-after'] ?? null };
}
