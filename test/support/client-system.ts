import type { ClientSystem } from '../../src/client/client.js';
import { hostSystem } from '../../src/client/system.js';

/** The host's system, with a random number that makes every backoff of the client zero. */
export function systemWithoutBackoff(): ClientSystem {
  return { ...hostSystem(), random: () => 0 };
}
