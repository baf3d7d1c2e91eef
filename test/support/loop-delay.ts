/** Measures how late the event loop is: how long a due timer waits. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Time between the timer's firings in milliseconds. Node counts it in: an idle loop would show this much. */
const RESOLUTION_MS = 1;

export interface LoopDelay {
  /** Ends the measurement. Returns the 99th percentile in milliseconds, without the timer's own interval. */
  p99Ms(): number;
}

export function watchLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return {
    p99Ms() {
      histogram.disable();
      return Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    },
  };
}
