/** The signals that end a process: the first stops it in order, a later one at once; and the signal that would open a debugger. */
import type { System } from './system.js';

/** Signals within this time are one request: a terminal signals the process group, and npm forwards the signal too. */
const SAME_SIGNAL_MS = 500;

/** Calls `first` on the first SIGTERM or SIGINT, `again` on every one that comes half a second after it or later. */
export function onSignals(system: Pick<System, 'monotonicMs'>, first: () => void, again: () => void): void {
  let firstMs: number | null = null;
  const onSignal = (): void => {
    const nowMs = system.monotonicMs();
    if (firstMs === null) {
      firstMs = nowMs;
      first();
    } else if (nowMs - firstMs > SAME_SIGNAL_MS) again();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/**
 * Ignores SIGUSR1, on which Node would listen on port 9229 for a debugger, by which any user of the machine reads keys and runs
 * code. The flag `--disable-sigusr1` does the same, but Node 20 refuses to start with it.
 */
export function ignoreDebuggers(): void {
  process.on('SIGUSR1', () => undefined);
}

/** Kills this process at once, so that no thread closes its files. */
export function killProcess(): void {
  process.kill(process.pid, 'SIGKILL');
}
