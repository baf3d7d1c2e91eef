/** Traces of runs that this instance records from their first event on: their events need not be read again. */
import type { OwnAppend } from '../run/live/own-appends.js';
import type { RunState } from '../run/state.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { Span } from './spans.js';
import { RunTrace } from './spans.js';

/**
 * Most runs that are held, each in a few kilobytes: those in progress, and those that wait 5 s to be sent. Beyond that the
 * oldest is dropped, and its trace is read from the log, which takes longer.
 */
const MAX_RUNS = 2_000;

/** What a trace needs of an append. */
interface Appended extends Pick<OwnAppend, 'events'> {
  readonly before: object | null;
  readonly after: Pick<RunState, 'runId'>;
}

export class HeldTraces {
  readonly #held = new BoundedMap<string, { readonly trace: RunTrace; nextSeq: number }>(MAX_RUNS);
  readonly #sha256: (text: string) => string;

  constructor(sha256: (text: string) => string) {
    this.#sha256 = sha256;
  }

  /** Adds the next append to a run. */
  onRunAppended({ before, events, after: { runId } }: Appended): void {
    if (before === null) this.#held.set(runId, { trace: new RunTrace(runId, this.#sha256), nextSeq: 0 });
    const held = this.#held.get(runId);
    for (const event of held === undefined ? [] : events) {
      // Another instance has appended meanwhile.
      if (event.seq !== held?.nextSeq) return void this.#held.delete(runId);
      held.trace.add(event);
      held.nextSeq += 1;
    }
  }

  /** Removes and returns the trace of an ended run, or null if it is not held. */
  take(runId: string): readonly Span[] | null {
    const spans = this.#held.get(runId)?.trace.spans() ?? null;
    this.#held.delete(runId);
    return spans;
  }
}
