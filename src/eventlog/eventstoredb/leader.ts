/** Finds the leading node of a cluster by asking its nodes (gossip). */
import { Client } from '@grpc/grpc-js';
import type { System } from '../../system/system.js';
import { wait } from '../../system/async/wait.js';
import type { Address } from './connection-string.js';
import type { Gossip } from './wire.js';
import { gossip, LEADER } from './wire.js';

export interface DiscoveryOptions {
  readonly system: Pick<System, 'after'>;
  /** Index of the host to ask first: another one each time, so that one wrong host cannot mislead for ever. */
  readonly first: number;
  readonly signal: AbortSignal;
}

/**
 * `host:port` of the leader, from the first host that knows it.
 *
 * @throws {Error} no host has named a leader in any round, or the signal aborted
 */
export async function leaderOf(address: Address, { system, first, signal }: DiscoveryOptions): Promise<string> {
  const { hosts, discovery } = address;
  let cause: unknown = null;
  for (let attempt = 0; attempt < discovery.maxAttempts; attempt += 1) {
    for (const index of hosts.keys()) {
      signal.throwIfAborted();
      const host = hosts[(first + index) % hosts.length];
      if (host === undefined) continue;
      try {
        const leader = leaderIn(await gossipOf(host, address, { system, signal }));
        if (leader !== null) return leader;
      } catch (error) {
        cause = error;
      }
    }
    await wait(system, discovery.intervalMs, signal);
  }
  throw new Error(`No host names a leader, asked ${discovery.maxAttempts} times`, { cause });
}

function leaderIn({ members }: Gossip): string | null {
  const leader = members.find(({ state, isAlive }) => isAlive && state === LEADER)?.endPoint ?? null;
  return leader === null ? null : `${leader.host}:${leader.port}`;
}

/** Asks a node for its view of the cluster, over a connection of its own. */
function gossipOf(
  host: string,
  { security, channelOptions, discovery }: Address,
  { system, signal }: Pick<DiscoveryOptions, 'system' | 'signal'>,
): Promise<Gossip> {
  const node = new Client(host, security, channelOptions);
  return new Promise((resolve, reject) => {
    const call = gossip(node, (error, answer) => {
      cancelTimer();
      signal.removeEventListener('abort', leave);
      node.close();
      if (answer === undefined) reject(error ?? new Error('The answer is empty'));
      else resolve(answer);
    });
    const leave = (): void => call.cancel();
    const cancelTimer = system.after(discovery.timeoutMs, leave);
    signal.addEventListener('abort', leave);
  });
}
