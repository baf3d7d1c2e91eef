/**
 * Limits the open connections to fewer than the limit on open files, because storage and calls to models need files
 * too. Without this, connections could use up all files: storage and model calls would fail, and Node would drop new
 * connections without a log line.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { System } from '../system/system.js';
import type { Logger } from '../system/logger.js';

/** Files reserved for other uses than connections: this share of the limit on open files, at most `MAX_RESERVED`. */
const RESERVED_SHARE = 0.25;
const MAX_RESERVED = 256;
/** When fewer connections than this share of the limit are open, the next refusal is logged again. */
const RELOG_SHARE = 0.75;
/** Interval at which open connections are compared with that share, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

export interface ConnectionBoundDeps {
  /** Limit on open files, or null if it is unknown. */
  readonly maxFiles: number | null;
  readonly system: Pick<System, 'after'>;
  readonly logger: Pick<Logger, 'error'>;
}

/**
 * Closes each connection beyond the limit at once. Logs the first one, and another one only after the number has fallen
 * below `RELOG_SHARE`.
 */
export function boundConnections(server: Server, { maxFiles, system, logger }: ConnectionBoundDeps): void {
  // Without a listener for errors, a failed accept would end the process.
  server.on('error', (err) => {
    if (server.listening) logger.error({ err }, 'connections: failed to accept a connection');
  });
  if (maxFiles === null) return;
  const bound = maxFiles - Math.min(MAX_RESERVED, Math.ceil(maxFiles * RESERVED_SHARE));
  server.maxConnections = bound;
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
