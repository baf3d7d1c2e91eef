/** Host names and IP addresses, as Host headers, sockets and settings write them. */

/**
 * The normal form of a host's name or address: in lower case, an IPv6 address in brackets, without port and without
 * the final dot. Null if the text names no host.
 */
export function hostNameOf(text: string): string | null {
  // A URL parser would read these characters as another part of the URL, or skip them.
  if (/[\s/?#@\\]/.test(text)) return null;
  const url = `http://${isBareIpv6(text) ? `[${text}]` : text}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : null;
}

/** Whether a name in that form always means this machine (RFC 6761, section 6.3; RFC 1122; RFC 4291). */
export function isLoopbackName(name: string): boolean {
  const isAddress = /^127(\.\d+){3}$/.test(name) || /^\[(::1|::ffff:7f[\da-f]{2}:[\da-f]{1,4})\]$/.test(name);
  return isAddress || /^(.+\.)?localhost$/.test(name);
}

function isBareIpv6(text: string): boolean {
  return /^[^[\]:]*:[^[\]:]*:/.test(text);
}

/** Whether a socket's IP address is a loopback address (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5.3). */
export function isLoopbackAddress(address: string): boolean {
  return /^(::ffff:)?127\./i.test(address) || address === '::1';
}

/** The network that one customer usually has: an IPv4 address, or the first 64 bits of an IPv6 one. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  const groups = [...head, ...zeros, ...tail].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
