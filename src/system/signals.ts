/** The signals that end a process: the first asks it to stop, a repeated one forces it. */
import type { System } from './system.js';

/** A terminal signals the whole process group and npm passes the signal on: one request arrives twice. */
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

/** Ends this process as a kill does: no thread closes in order what it has open. */
export function endAsKilled(): void {
  process.kill(process.pid, 'SIGKILL');
}
