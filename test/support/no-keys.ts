/** Access rules of a service without keys, for tests of an edge without the service. */
import { failedKeys } from '../../src/keys/failed-keys.js';
import { addressList } from '../../src/system/addresses.js';
import { nodeSystem } from '../../src/system/system.js';

const unused = (): never => {
  throw new Error('There are no keys');
};

/** Grants everything to every client. */
export const NO_KEYS = {
  authenticator: {
    isOpen: true,
    byKey: unused,
    bySession: unused,
    byTicket: unused,
    signIn: unused,
    watch: () => () => undefined,
    keys: { list: unused, add: unused, revoke: unused, events: unused },
    sessions: { signOut: unused },
    tickets: { issue: unused },
    idSecret: { read: unused },
  },
  failedKeys: failedKeys(nodeSystem()),
  trustedProxies: addressList([]),
  onAccessRefused: unused,
  isLoopback: true,
};
