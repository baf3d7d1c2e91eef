/** Lists of IP addresses and ranges, as settings, sockets and proxies write them. */
import { BlockList, isIP } from 'node:net';

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
