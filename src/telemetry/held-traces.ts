/** Holds the events of runs that this instance records from their beginning, so that their traces need no read of the log. */
import type { OwnAppend } from '../run/runs/states.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';
import type { Span } from './spans.js';
import { RunTrace } from './spans.js';

/**
 * Most characters of held events, about as many bytes of memory, or twice as many for texts outside Latin-1: of runs in
 * progress, of those that wait 5 s to be sent, and of paused ones that another instance ends. Beyond that the events of the
 * oldest run are dropped, and its trace is read from the log, which takes longer.
 */
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** What an event counts beside its data: the memory of its id, hash, time and objects. */
const EVENT_CHARACTERS = 300;

/** What a trace needs of an append. */
interface Appended extends Pick<OwnAppend, 'events' | 'characters'> {
  readonly before: object | null;
  readonly after: Pick<RunState, 'runId'>;
}

interface HeldRun {
  readonly events: RunEvent[];
  characters: number;
}

export class HeldTraces {
  /** By run, the oldest first. */
  readonly #held = new Map<string, HeldRun>();
  readonly #sha256: (text: string) => string;
  readonly #maxCharacters: number;
  #characters = 0;

  constructor(sha256: (text: string) => string, maxCharacters = MAX_CHARACTERS) {
    this.#sha256 = sha256;
    this.#maxCharacters = maxCharacters;
  }

  /** Number of held runs. */
  get size(): number {
    return this.#held.size;
  }

  /** Holds the next append to a run. Spans are built when they are sent, many at once, which takes a quarter of the time. */
  onRunAppended({ before, events, characters, after: { runId } }: Appended): void {
    if (before === null) this.#held.set(runId, { events: [], characters: 0 });
    const held = this.#held.get(runId);
    if (held === undefined) return;
    // If events are missing, another instance has appended them.
    if (events[0]?.seq !== held.events.length) return void this.#drop(runId);
    held.events.push(...events);
    const added = characters + events.length * EVENT_CHARACTERS;
    held.characters += added;
    this.#characters += added;
    if (this.#characters > this.#maxCharacters) this.#dropOldest();
  }

  /** Removes a run and returns its trace, or null if it is not held or has not ended. */
  take(runId: string): readonly Span[] | null {
    const held = this.#drop(runId);
    if (held === undefined) return null;
    const trace = new RunTrace(runId, this.#sha256);
    for (const event of held.events) trace.add(event);
    return trace.spans();
  }

  /** Forgets a run. */
  forget(runId: string): void {
    this.#drop(runId);
  }

  #drop(runId: string): HeldRun | undefined {
    const held = this.#held.get(runId);
    this.#held.delete(runId);
    this.#characters -= held?.characters ?? 0;
    return held;
  }

  #dropOldest(): void {
    for (const runId of this.#held.keys()) {
      this.#drop(runId);
      if (this.#characters <= this.#maxCharacters) return;
    }
  }
}
