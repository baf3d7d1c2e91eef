/** Host names, IP addresses and lists of them, as Host headers, sockets, proxies and settings write them. */
import { BlockList, isIP } from 'node:net';

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

// Addresses, ranges and lists of them.

/** Single addresses and ranges. */
export interface AddressList {
  /** @param address in the form of `addressIn`; any other text is in no list */
  has(address: string): boolean;
}

/** Whether a text is an address, or a range such as `10.0.0.0/8`. */
export function isAddressOrRange(text: string): boolean {
  const { address, bits } = partsOf(text);
  const family = isIP(address);
  return family !== 0 && (bits === null || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)));
}

/** @param texts addresses or ranges */
export function addressList(texts: readonly string[]): AddressList {
  const list = new BlockList();
  for (const text of texts) {
    const { address, bits } = partsOf(text);
    if (bits === null) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  // Called for every request, and most services have no proxy.
  if (texts.length === 0) return { has: () => false };
  return { has: (address) => isIP(address) !== 0 && list.check(address, familyOf(address)) };
}

/**
 * The address in a text, which may have a port, and brackets around an IPv6 one; an IPv4-mapped IPv6 address as plain
 * IPv4. Null if there is none.
 */
export function addressIn(text: string): string | null {
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? [];
  const [, withoutPort] = /^([\d.]+):\d+$/.exec(text) ?? [];
  const address = plainIpv4((bracketed ?? withoutPort ?? text).toLowerCase());
  return isIP(address) === 0 ? null : address;
}

/** An IPv4-mapped IPv6 address as plain IPv4; others as they are. */
export function plainIpv4(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

function partsOf(text: string): { readonly address: string; readonly bits: string | null } {
  const slash = text.indexOf('/');
  return slash < 0 ? { address: text, bits: null } : { address: text.slice(0, slash), bits: text.slice(slash + 1) };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}
