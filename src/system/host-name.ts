/** Names of hosts, as Host headers, addresses and settings write them. */

/**
 * The one form of a host's name or address, as URLs have it: in lower case, an IPv6 address in brackets, without port
 * and without the dot of the root. Null when the text names no host.
 */
export function hostNameOf(text: string): string | null {
  // A URL would take these for something beside the host, or pass over them.
  if (/[\s/?#@\\]/.test(text)) return null;
  const url = `http://${isBareIpv6(text) ? `[${text}]` : text}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : null;
}

/** Whether a name in that form means the own machine, wherever it is resolved (RFC 6761, section 6.3; RFC 1122; RFC 4291). */
export function isLoopbackName(name: string): boolean {
  const isAddress = /^127(\.\d+){3}$/.test(name) || /^\[(::1|::ffff:7f[\da-f]{2}:[\da-f]{1,4})\]$/.test(name);
  return isAddress || /^(.+\.)?localhost$/.test(name);
}

function isBareIpv6(text: string): boolean {
  return /^[^[\]:]*:[^[\]:]*:/.test(text);
}
