/** Which requests are accepted: by the host name they use, and by the page that sends them. */
import { hostNameOf, isLoopbackName } from '../system/host-name.js';

export interface SourceRules {
  /** Whether a Host names this service. */
  readonly isOwnHost: (host: string) => boolean;
  /** Origins that browsers may call from, beside the service's own. */
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
 * The host names that a service answers to. On a loopback address these are its own and the loopback names: any other
 * name means that a web page resolved its own domain to this machine (DNS rebinding). The names of any other address are
 * unknown here, so every name is served until some are listed.
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
  /** As the setting names it. */
  readonly host: string;
  /** The IP address that it resolves to. */
  readonly address: string;
  /** In the form of `hostNameOf`. */
  readonly allowedHosts: readonly string[];
}

/** Why a Host is refused; null: it is not. Browsers always send one, so a missing Host is no DNS rebinding. */
export function refusedHost(request: SourcedRequest, { isOwnHost }: SourceRules): SourceRefusal | null {
  const host = hostOf(request);
  if (host === undefined || isOwnHost(host)) return null;
  const detail = `Host ${JSON.stringify(host)} is not served here: loopback names are, and those in ALLOWED_HOSTS`;
  return { status: 421, detail };
}

/**
 * Why a page may not send a mutating request or open a socket; null: it may, or no page sent it. Browsers name
 * the origin with every such request, and most of them whether it is another site's.
 */
export function refusedPage(request: SourcedRequest, { corsOrigins }: SourceRules): SourceRefusal | null {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && corsOrigins.includes(origin)) return null;
  if (origin !== undefined && !isOwnOrigin(origin, hostOf(request))) {
    const detail = `Origin ${JSON.stringify(origin)} is not allowed: the service's own is, and those in CORS_ORIGINS`;
    return { status: 403, detail };
  }
  if (site !== 'cross-site') return null;
  return { status: 403, detail: 'Cross-site requests are not allowed: those from origins in CORS_ORIGINS are' };
}

/** Whether a page of this service sent a request. Other programs name no origin. */
export function hasOwnOrigin(request: SourcedRequest): boolean {
  const { origin } = request.headers;
  return origin !== undefined && isOwnOrigin(origin, hostOf(request));
}

/** The scheme may differ: a proxy may speak TLS for the service. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  // In the page's scheme, so that a default port that only one of the two names is the same.
  const own = `${page.protocol}//${host}`;
  return /^https?:$/.test(page.protocol) && URL.canParse(own) && new URL(own).host === page.host;
}

function hostOf({ url = '', headers }: SourcedRequest): string | undefined {
  return /^(?:https?|wss?):\/\/([^/?#]*)/i.exec(url)?.[1] ?? headers.host;
}
