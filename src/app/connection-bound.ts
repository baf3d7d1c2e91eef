/**
 * The bound on open connections, below that on open files: what is stored, read and asked of models needs some too.
 * Without it Linux refuses all of them alike, and Node closes what it cannot accept without a word.
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
const LOOK_MS = 1_000;

export interface ConnectionBoundDeps {
  /** Limit on open files; null: unknown. */
  readonly maxFiles: number | null;
  readonly system: Pick<System, 'after'>;
  readonly logger: Pick<Logger, 'error'>;
}

/** Closes connections past the limit as soon as they are accepted, and logs it once until they are few again. */
export function boundConnections(server: Server, { maxFiles, system, logger }: ConnectionBoundDeps): void {
  // Without a listener an accept that fails would end the process.
  server.on('error', (err) => {
    if (server.listening) logger.error({ err }, 'connections: one cannot be accepted');
  });
  if (maxFiles === null) return;
  const bound = maxFiles - Math.min(MAX_KEPT, Math.ceil(maxFiles * KEPT_SHARE));
  server.maxConnections = bound;
  let isTold = false;
  const look = (): void => {
    server.getConnections((error, open) => {
      if (error === null && open < bound * FEW_SHARE) isTold = false;
      else if (server.listening) system.after(LOOK_MS, look);
    });
  };
  server.on('drop', () => {
    if (isTold) return;
    isTold = true;
    logger.error({ open: bound, maxFiles }, 'connections: no more are accepted until some are closed (ulimit -n)');
    system.after(LOOK_MS, look);
  });
}

/** The process's limit on open files, the soft one (`ulimit -n`); null: unknown, or there is none. */
export function maxOpenFiles(): number | null {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    // Only Linux reports the limit in a file.
    return null;
  }
}
