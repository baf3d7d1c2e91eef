/** Which addresses a webhook may have: public ones, so that it reaches no machine behind the service's firewall. */
import { addressIn, addressList } from '../system/addresses.js';

/**
 * IANA's special-purpose registry for IPv4, multicast, and the host of Azure's virtual machines, which gives them
 * credentials. Other clouds have theirs in these ranges, or in those of IPv6 that are not global.
 */
const SPECIAL_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3', '168.63.129.16/32'],
];
/** Of IPv6 only 2000::/3 is global unicast. These parts of it are reserved, or are tunnels to IPv4. */
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];
/** NAT64 (RFC 6052): the last 32 bits are the IPv4 address that is reached. */
const NAT64 = '64:ff9b::';

const special = addressList([
  ...SPECIAL_IPV4,
  ...SPECIAL_IPV4.map((range) => `${NAT64}${range.replace(/\d+$/, (bits) => String(96 + Number(bits)))}`),
  ...SPECIAL_IPV6,
]);
const global = addressList(['0.0.0.0/0', '2000::/3', `${NAT64}/96`]);

/** Whether an IPv4 or IPv6 address is public. An IPv4-mapped one counts as the IPv4 address in it. */
export function isPublicAddress(text: string): boolean {
  const address = addressIn(text);
  return address !== null && global.has(address) && !special.has(address);
}
