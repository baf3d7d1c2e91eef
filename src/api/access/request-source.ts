/** The source of a request: its client's address, and whether its host name and the page that sends it are accepted. */
import type { AddressList } from '../../system/addresses.js';
import { addressIn, hostNameOf, isLoopbackName, plainIpv4 } from '../../system/addresses.js';

export interface SourceRules {
  /** Whether a Host header names this service. */
  readonly isOwnHost: (host: string) => boolean;
  /** Origins of pages that may call the service, beside its own. */
  readonly corsOrigins: readonly string[];
}

/** The parts of a request that name its source. */
export interface SourcedRequest {
  /** The request target; one in absolute form stands in for the Host (RFC 9112, section 3.2.2). */
  readonly url?: string | undefined;
  readonly headers: {
    readonly host?: string | undefined;
    readonly origin?: string | undefined;
    readonly 'sec-fetch-site'?: string | string[] | undefined;
  };
}

export interface SourceRefusal {
  readonly status: 421 | 403;
  readonly detail: string;
}

/**
 * The host names that a service accepts. On a loopback address these are its own and the loopback names: any other name
 * means that a web page resolved its domain to this machine (DNS rebinding). On other addresses the service does not know
 * its names, so it accepts every name until some are listed.
 */
export function ownHosts({ host, address, allowedHosts }: BoundTo): SourceRules['isOwnHost'] {
  const bound = [hostNameOf(host), hostNameOf(address)];
  const isLoopback = bound.some((name) => name !== null && isLoopbackName(name));
  if (allowedHosts.length === 0 && !isLoopback) return () => true;
  const names = new Set([...bound, ...allowedHosts]);
  return (text) => {
    const name = hostNameOf(text);
    return name !== null && (isLoopbackName(name) || names.has(name));
  };
}

export interface BoundTo {
  /** The setting. */
  readonly host: string;
  /** The IP address that the host resolves to. */
  readonly address: string;
  /** In the form of `hostNameOf`. */
  readonly allowedHosts: readonly string[];
}

/** Why a Host is refused, or null. Browsers always send one, so a request without it is no DNS rebinding. */
export function refusedHost(request: SourcedRequest, { isOwnHost }: SourceRules): SourceRefusal | null {
  const host = hostOf(request);
  if (host === undefined || isOwnHost(host)) return null;
  const detail = `Host ${JSON.stringify(host)} is not accepted; loopback names and those in ALLOWED_HOSTS are`;
  return { status: 421, detail };
}

/**
 * Why a page may not send a mutating request or open a socket, or null if it may or no page sent it. Browsers send
 * Origin with every such request, and most of them Sec-Fetch-Site.
 */
export function refusedPage(request: SourcedRequest, { corsOrigins }: SourceRules): SourceRefusal | null {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && corsOrigins.includes(origin)) return null;
  if (origin !== undefined && !isOwnOrigin(origin, hostOf(request))) {
    const detail = `Origin ${JSON.stringify(origin)} is not allowed; the service's own and those in CORS_ORIGINS are`;
    return { status: 403, detail };
  }
  if (site !== 'cross-site') return null;
  return { status: 403, detail: 'Cross-site requests are allowed only from origins in CORS_ORIGINS' };
}

/** Whether a page of this service sent a request. Programs other than browsers send no Origin. */
export function hasOwnOrigin(request: SourcedRequest): boolean {
  const { origin } = request.headers;
  return origin !== undefined && isOwnOrigin(origin, hostOf(request));
}

/** Ignores the scheme: a proxy may add TLS. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  // In the page's scheme, so that an explicit default port makes no difference.
  const own = `${page.protocol}//${host}`;
  return /^https?:$/.test(page.protocol) && URL.canParse(own) && new URL(own).host === page.host;
}

function hostOf({ url = '', headers }: SourcedRequest): string | undefined {
  return /^(?:https?|wss?):\/\/([^/?#]*)/i.exec(url)?.[1] ?? headers.host;
}

// The client's address, from the connection or from a trusted proxy.

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
