/**
 * Limits the open connections to fewer than the limit on open files, because storage and calls to models need files
 * too. Without this, connections could use up all files: storage and model calls would fail, and Node would drop new
 * connections without a log line. One address gets a share of them, so that it cannot lock out the others.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressList } from '../system/addresses.js';
import { networkOf, plainIpv4 } from '../system/addresses.js';
import type { System } from '../system/system.js';
import type { Logger } from '../system/logger.js';

/** Files reserved for other uses than connections: this share of the limit on open files, at most `MAX_RESERVED`. */
const RESERVED_SHARE = 0.25;
const MAX_RESERVED = 256;
/** The share of the connections that one address may have; the others keep the rest. */
const ADDRESS_SHARE = 0.5;
/** When fewer connections than this share of the limit are open, the next refusal is logged again. */
const RELOG_SHARE = 0.75;
/** Interval at which open connections are compared with that share, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

export interface ConnectionBoundDeps {
  /** Limit on open files, or null if it is unknown. */
  readonly maxFiles: number | null;
  /** Their connections have no share, because they are of many clients. */
  readonly trustedProxies: AddressList;
  readonly system: Pick<System, 'after'>;
  readonly logger: Pick<Logger, 'error'>;
}

/**
 * Closes each connection beyond the limit at once, and beyond the share of its address. Logs the first one, and another one
 * only after the number has fallen below `RELOG_SHARE`.
 */
export function boundConnections(server: Server, deps: ConnectionBoundDeps): void {
  const { maxFiles, system, logger } = deps;
  // Without a listener for errors, a failed accept would end the process.
  server.on('error', (err) => {
    if (server.listening) logger.error({ err }, 'connections: failed to accept a connection');
  });
  if (maxFiles === null) return;
  const bound = maxFiles - Math.min(MAX_RESERVED, Math.ceil(maxFiles * RESERVED_SHARE));
  server.maxConnections = bound;
  boundAddresses(server, Math.ceil(bound * ADDRESS_SHARE), deps);
  let isReported = false;
  const check = (): void => {
    server.getConnections((error, open) => {
      if (error === null && open < bound * RELOG_SHARE) isReported = false;
      else if (server.listening) system.after(CHECK_INTERVAL_MS, check);
    });
  };
  server.on('drop', () => {
    if (isReported) return;
    isReported = true;
    logger.error({ open: bound, maxFiles }, 'connections: limit reached, refusing new ones; raise ulimit -n');
    system.after(CHECK_INTERVAL_MS, check);
  });
}

/** Closes the connections of an address, or of an IPv6 network of 64 bits, beyond its share. */
function boundAddresses(
  server: Server,
  share: number,
  { trustedProxies, logger }: Pick<ConnectionBoundDeps, 'trustedProxies' | 'logger'>,
): void {
  const clients = new Map<string, { open: number; isReported: boolean }>();
  server.on('connection', (socket) => {
    const peer = plainIpv4(socket.remoteAddress ?? 'unknown');
    if (trustedProxies.has(peer)) return;
    const address = networkOf(peer);
    const client = clients.get(address) ?? { open: 0, isReported: false };
    if (client.open >= share) {
      socket.destroy();
      if (client.isReported) return;
      client.isReported = true;
      logger.error({ address, open: share }, 'connections: an address has its share, refusing its new ones');
      return;
    }
    client.open += 1;
    clients.set(address, client);
    socket.once('close', () => {
      client.open -= 1;
      if (client.open < share * RELOG_SHARE) client.isReported = false;
      if (client.open === 0) clients.delete(address);
    });
  });
}

/** The soft limit of the process on open files (`ulimit -n`), or null if it is unknown or there is none. */
export function maxOpenFiles(): number | null {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    // Only Linux reports the limit in a file.
    return null;
  }
}
