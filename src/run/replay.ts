/** Replays a run from its events, and verifies each link of its hash chain and each transition of its chart. */
import type { System } from '../system/system.js';
import { RunCorrupt } from './errors.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import { GENESIS_HASH } from '../eventsourcing/hash-chain.js';
import type { NodeStartedData } from '../generated/schemas.js';
import { present } from '../system/element.js';
import type { EventLog } from '../eventlog/port.js';
import { mayHaveLostEnd } from '../eventlog/port.js';
import type { ChartCache } from './chart/machine.js';
import type { Chart, RunSnapshot } from './chart/machine.js';
import { orderAt } from './frontier/node-start.js';
import type { RunState } from './state.js';
import { assertFollows, assertRunEvent, currentEvent, readChecked, orCorrupt } from './stream.js';
import type { RunEvent, Upcast } from './events.js';
import { upcast } from './events.js';

/** A replayed run. */
export interface Replay {
  readonly chart: Chart;
  readonly snapshot: RunSnapshot;
}

/** What a replay needs besides the events. */
export interface ReplayDeps {
  readonly charts: ChartCache;
  readonly sha256: System['sha256'];
  /** Default: the changes in events.ts. */
  readonly upcasts?: readonly Upcast[];
}

/** The runs whose records are known to be corrupt. */
export interface KnownCorruptRuns {
  /** Adds a run. */
  readonly mark: (error: RunCorrupt) => void;
  /** @throws {RunCorrupt} for a run that was added before */
  readonly assertNotCorrupt: (runId: string) => void;
}

/** Replays a run event by event. */
export class RunReplayer {
  readonly #runId: string;
  readonly #deps: ReplayDeps;
  #replay: Replay | null = null;
  #hash = GENESIS_HASH;
  #next = 0;

  constructor(runId: string, deps: ReplayDeps) {
    this.#runId = runId;
    this.#deps = deps;
  }

  /** The run after the events so far, or null before the first. */
  get replay(): Replay | null {
    return this.#replay;
  }

  /** Number of applied events. */
  get events(): number {
    return this.#next;
  }

  /** Hash of the last applied event; 64 zeros before the first. */
  get headHash(): string {
    return this.#hash;
  }

  /** Applies the next event. @throws {RunCorrupt} when its hash or the chart does not allow it; the replay stays as it is */
  apply(event: ExportedEvent): void {
    this.#take(event, () => {
      assertFollows(this.#runId, { hash: this.#hash }, { event, sha256: this.#deps.sha256 });
      const current = upcast(event, this.#deps.upcasts);
      assertRunEvent(current);
      return current;
    });
  }

  /**
   * Applies an event from `readChecked`, which has verified its link and data.
   *
   * @throws {RunCorrupt} when the chart does not allow it; the replay stays as it is
   */
  applyChecked(event: RunEvent): void {
    this.#take(event, () => currentEvent(this.#runId, event, this.#deps.upcasts));
  }

  #take({ seq, hash }: ExportedEvent, current: () => RunEvent): void {
    this.#replay = orCorrupt({ runId: this.#runId, seq: this.#next }, () => {
      if (seq !== this.#next) throw new Error(`event ${seq} is in place of event ${this.#next}`);
      return this.#follow(current());
    });
    this.#hash = hash;
    this.#next += 1;
  }

  /** Checks that the answers were shown in the order that follows from the record, so that no member is favoured. */
  #assertShown({ step, order_shown: order = [] }: NodeStartedData, run: RunState): void {
    if (order.length === 0) return;
    const started = present(
      run.progress.frontier.find((each) => each.step === step),
      `step ${step} once it is started`,
    );
    const expected = orderAt(run, started, this.#deps.sha256);
    if (expected.some((member, index) => order[index] !== member)) {
      throw new Error(`its order_shown is ${order.join(', ')}, and ${expected.join(', ')} follows from the record`);
    }
  }

  #follow(event: RunEvent): Replay {
    if (this.#replay !== null) {
      const { chart, snapshot } = this.#replay;
      const after = { chart, snapshot: chart.next(snapshot, event) };
      if (event.type === 'NodeStarted') this.#assertShown(event.data, after.snapshot.context.run);
      return after;
    }
    if (event.type !== 'RunRequested') throw new Error(`a run begins with RunRequested, not with ${event.type}`);
    const { runId, graph, graphHash } = event.data;
    if (runId !== this.#runId) throw new Error(`it is the request of run "${runId}"`);
    if (graphHash !== this.#deps.sha256(canonical(graph))) throw new Error('its graph does not match its hash');
    const chart = this.#deps.charts.of(event.data);
    return { chart, snapshot: chart.first(event) };
  }
}

/**
 * A run replayed from the log, or null if there is no such run.
 *
 * @param seen revision of an event that a view has seen, or -1
 * @throws {RunCorrupt} at the first event that its hash or the chart does not allow; when the run ends before `seen` and the
 *   log may have lost that event; and for a run that is known to be corrupt: nothing may be appended to it
 */
export async function replayRun(
  log: EventLog,
  runId: string,
  { corruptRuns, seen = -1, ...deps }: ReplayDeps & { readonly corruptRuns?: KnownCorruptRuns; readonly seen?: number },
): Promise<Replay | null> {
  corruptRuns?.assertNotCorrupt(runId);
  const replayer = new RunReplayer(runId, deps);
  try {
    for await (const event of readChecked(log, runId, { sha256: deps.sha256 })) replayer.applyChecked(event);
    const last = replayer.events - 1;
    if (last < seen && (await mayHaveLostEnd(log, last)))
      throw new RunCorrupt({ runId, seq: last + 1, reason: endsBefore(seen) });
    return replayer.replay;
  } catch (error) {
    if (error instanceof RunCorrupt) corruptRuns?.mark(error);
    throw error;
  }
}

/** The reason for a record that ends before an event that a view has seen. */
export function endsBefore(seen: number): string {
  return `the record ends before it, although it once had event ${seen}`;
}
