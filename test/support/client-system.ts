/** Worlds for the client of the service: one that never makes it wait longer than it is asked to. */
import type { ClientSystem } from '../../src/client/client.js';
import { hostSystem } from '../../src/client/system.js';

/** The host's, but by its randomness every wait that is the client's own choice is none. */
export function hurriedSystem(): ClientSystem {
  return { ...hostSystem(), random: () => 0 };
}
