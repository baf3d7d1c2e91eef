/**
 * Bounds the open connections below the limit on open files, because storage and calls to models need files too. Without
 * the bound Linux refuses all of them alike, and Node closes connections that it cannot accept without a log line.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { System } from '../system/system.js';
import type { Logger } from '../system/logger.js';

/** Files reserved for other uses than connections: this share of the limit on open files, at most `MAX_KEPT`. */
const KEPT_SHARE = 0.25;
const MAX_KEPT = 256;
/** Once open connections fall below this share of the limit, the next refusal is logged again. */
const FEW_SHARE = 0.75;
/** Interval at which open connections are compared with that share, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

export interface ConnectionBoundDeps {
  /** Limit on open files, or null if it is unknown. */
  readonly maxFiles: number | null;
  readonly system: Pick<System, 'after'>;
  readonly logger: Pick<Logger, 'error'>;
}

/** Closes connections past the limit as soon as they are accepted, and logs it once until they are few again. */
export function boundConnections(server: Server, { maxFiles, system, logger }: ConnectionBoundDeps): void {
  // Without a listener an accept that fails would end the process.
  server.on('error', (err) => {
    if (server.listening) logger.error({ err }, 'connections: failed to accept one');
  });
  if (maxFiles === null) return;
  const bound = maxFiles - Math.min(MAX_KEPT, Math.ceil(maxFiles * KEPT_SHARE));
  server.maxConnections = bound;
  let isReported = false;
  const check = (): void => {
    server.getConnections((error, open) => {
      if (error === null && open < bound * FEW_SHARE) isReported = false;
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
