/** One run as it is looked at: its record as it grows, and the moment of it that is shown. */
import type { ReadonlySignal } from '@preact/signals';
import { batch, computed, signal } from '@preact/signals';
import type { RunEvent } from '../../../client/run-events.js';
import { isTerminal } from '../../../client/run-events.js';
import type { LiveMessage } from '../../../client/tokens.js';
import type { StepPrompt, Verification } from '../../../generated/schemas.js';
import type { AsItRan } from '../../record/executions.js';
import { asItRan } from '../../record/executions.js';
import type { GraphView } from '../../record/graph.js';
import { graphViewAt } from '../../record/graph.js';
import type { Moment } from '../../record/run-record.js';
import { RunRecord } from '../../record/run-record.js';
import type { Timeline } from '../../record/timeline.js';
import { timelineAt } from '../../record/timeline.js';

/** Where a run's events come from: the service, or a file that holds them. */
export interface RunSource {
  readonly id: string;
  /** Whether it may tell more than it has at first. */
  readonly isLive: boolean;
  /** The events after `from` (-1: all), each once and in order, to the run's end or the signal's. */
  events(from: number, signal: AbortSignal): AsyncIterable<RunEvent>;
  /** Drafts while they are written. Absent: there is nothing of the kind. */
  readonly tokens?: (signal: AbortSignal) => AsyncIterable<LiveMessage>;
  /** What the service finds when it checks the record itself. Absent: there is no service to ask. */
  readonly verify?: (signal: AbortSignal) => Promise<Verification>;
  /** What the model of a step was sent at its last attempt. Absent: nobody renders it. */
  readonly prompt?: (step: number, signal: AbortSignal) => Promise<StepPrompt>;
}

/** Where the moment and the view are kept: the page's address. */
export interface RunPlace {
  readonly query: ReadonlySignal<URLSearchParams>;
  setQuery(changes: Readonly<Record<string, string | number | null>>): void;
}

export interface RunStoreDeps {
  readonly source: RunSource;
  readonly place: RunPlace;
  /** The time now, in milliseconds since 1970. */
  readonly clock: ReadonlySignal<number>;
  /** Calls when the page is about to be painted: what has come until then is shown at once. */
  readonly frame: (show: () => void) => void;
}

/** How the graph is drawn: as it is, or as it ran. */
export type RunView = 'is' | 'ran';

/** A draft that a node is writing now. */
export interface Writing {
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  readonly turn: number;
  readonly text: string;
  /** How much of it came before anybody listened here, and is not in the text. */
  readonly from: number;
}

/** An event that somebody looks for: where a draft, a score, a pause or a decision came, or the run failed or ended. */
export interface Stop {
  readonly seq: number;
  readonly kind: 'draft' | 'score' | 'pause' | 'decision' | 'failure' | 'end';
  /** Where there is one. */
  readonly node: string | null;
  /** Of a score. */
  readonly score: number | null;
}

/** What the head of the page tells of the run as it stands now, whatever moment is looked at. */
export interface RunSummary {
  /** As it was asked for. */
  readonly topic: string;
  /** Of the blueprint; null: the built-in council. */
  readonly council: string | null;
  readonly blueprintId: string | null;
  readonly isGodMode: boolean;
  /** Who asked for it; null: the service had no keys. */
  readonly actor: string | null;
  readonly createdAt: string;
  readonly endedAt: string | null;
  /** The run that it is a fork of, and the event there. */
  readonly parent: { readonly runId: string; readonly at: number } | null;
  /** The run at its head. */
  readonly now: Moment;
}

/** One run as it is looked at. Whatever depends on its growing record reads `head` or what is computed from it. */
export class RunStore {
  readonly source: RunSource;
  readonly record = new RunRecord();
  readonly #place: RunPlace;
  readonly #clock: ReadonlySignal<number>;
  readonly #frame: RunStoreDeps['frame'];

  /** `seq` of the last event that is shown as known; -1: none yet. */
  readonly head = signal(-1);
  /** Drafts being written now, by their steps. */
  readonly tokens = signal<readonly Writing[]>([]);
  /** Why the events do not come; null: they do. */
  readonly fault = signal<unknown>(null);
  readonly #stops: Stop[] = [];
  /** By step. */
  readonly #writing = new Map<number, Writing>();
  /** The last attempt of each step that has ended: what is still told of it comes too late. */
  readonly #endedAttempts = new Map<number, number>();
  #isFrameAsked = false;

  constructor({ source, place, clock, frame }: RunStoreDeps) {
    this.source = source;
    this.#place = place;
    this.#clock = clock;
    this.#frame = frame;
  }

  /** The event that is looked at; null: the head, as it moves. */
  readonly at = computed(() => this.#numberIn('at'));
  /** The event whose moment is shown; -1: there is none yet. */
  readonly shown: ReadonlySignal<number> = computed(() => Math.min(this.at.value ?? Infinity, this.head.value));
  readonly isOver = computed(() => {
    const last = this.record.events[this.head.value];
    return last !== undefined && isTerminal(last);
  });
  /** Whether what is shown moves on with the run. */
  readonly isFollowing = computed(() => this.at.value === null && this.source.isLive && !this.isOver.value);

  /** The state at the moment that is shown; null before the first event. */
  readonly moment: ReadonlySignal<Moment | null> = computed(() => this.record.momentAt(this.shown.value));
  /** The run as it ran until the moment that is shown. */
  readonly executions: ReadonlySignal<AsItRan | null> = computed(() =>
    asItRan(this.record, this.shown.value, this.#nowAt(this.shown.value)),
  );
  /** The run as it ran until its head: what places are found for, so that nothing moves when the moment does. */
  readonly whole: ReadonlySignal<AsItRan | null> = computed(() =>
    asItRan(this.record, this.head.value, this.#nowAt(this.head.value)),
  );
  /** The graph with its marks at the moment that is shown. */
  readonly graph: ReadonlySignal<GraphView | null> = computed(() =>
    graphViewAt(this.record, this.shown.value, this.executions.value),
  );
  /** The whole run along time, to its head. */
  readonly timeline: ReadonlySignal<Timeline | null> = computed(() =>
    timelineAt(this.record, this.head.value, this.#nowAt(this.head.value)),
  );
  readonly stops: ReadonlySignal<readonly Stop[]> = computed(() => {
    const head = this.head.value;
    return this.#stops.filter(({ seq }) => seq <= head);
  });
  /** The draft before the one that is shown, at the last moment it was there; null: there is none. */
  readonly draftBefore: ReadonlySignal<Moment | null> = computed(() => {
    const [shown, draft] = [this.shown.value, this.moment.value?.draft ?? null];
    for (const { seq, kind } of this.#stops.toReversed()) {
      if (seq > shown || !STRIDES.includes(kind)) continue;
      const before = this.record.momentAt(seq - 1);
      if (before !== null && before.draft !== null && before.draft !== draft) return before;
    }
    return null;
  });
  readonly summary: ReadonlySignal<RunSummary | null> = computed(() => this.#summaryAt(this.head.value));

  readonly view: ReadonlySignal<RunView> = computed(() =>
    this.#place.query.value.get('view') === 'ran' ? 'ran' : 'is',
  );
  readonly tab = computed(() => this.#place.query.value.get('tab'));
  /** The step that is looked into; null: none. */
  readonly selectedStep = computed(() => this.#numberIn('step'));
  /** The other moment that the draft is compared with; null: the draft before. */
  readonly comparedWith = computed(() => this.#numberIn('with'));

  /** Name of a node, as people know it. */
  labelOf(node: string): string {
    return this.graph.value?.nodes.find(({ id }) => id === node)?.label ?? node;
  }

  /** Reads what there is, and what comes. Returns what ends it; started again, it goes on where it was. */
  start(): () => void {
    const ending = new AbortController();
    void this.#read(ending.signal);
    if (this.source.isLive) void this.#listen(ending.signal);
    return () => ending.abort();
  }

  /** Looks at an event; null, or the last one: at the head as it moves. */
  goTo(seq: number | null): void {
    this.#place.setQuery({ at: seq === null || seq >= this.head.value ? null : Math.max(0, seq) });
  }

  /** Goes on by so many events, back where it is less than 0. */
  step(by: number): void {
    this.goTo(this.shown.value + by);
  }

  /** Goes to the next draft or decision, or the one before; beyond the last to the head, before the first to the start. */
  stride(direction: 1 | -1): void {
    const [shown, stops] = [this.shown.value, this.stops.value.filter(({ kind }) => STRIDES.includes(kind))];
    if (direction === 1) this.goTo(stops.find(({ seq }) => seq > shown)?.seq ?? null);
    else this.goTo(stops.findLast(({ seq }) => seq < shown)?.seq ?? 0);
  }

  setView(view: RunView): void {
    this.#place.setQuery({ view: view === 'is' ? null : view });
  }

  setTab(tab: string | null): void {
    this.#place.setQuery({ tab });
  }

  /** Looks into a step; null: into none. */
  select(step: number | null): void {
    this.#place.setQuery({ step, tab: step === null ? null : 'step' });
  }

  /** Compares the draft with that of another moment; null: with the draft before. */
  compareWith(seq: number | null): void {
    this.#place.setQuery({ with: seq });
  }

  async #read(ending: AbortSignal): Promise<void> {
    this.fault.value = null;
    try {
      for await (const event of this.source.events(this.record.head, ending)) this.#take(event);
    } catch (error) {
      if (!ending.aborted) this.fault.value = error;
    }
  }

  async #listen(ending: AbortSignal): Promise<void> {
    try {
      for await (const message of this.source.tokens?.(ending) ?? []) this.#hear(message);
    } catch {
      // The events tell each draft in the end; what keeps the events away is told as their fault.
    }
  }

  #take(event: RunEvent): void {
    if (!this.record.add(event)) return;
    const stop = stopAt(event);
    if (stop !== null) this.#stops.push(stop);
    if (event.type === 'NodeCompleted' || event.type === 'NodeFailed') {
      this.#endedAttempts.set(event.data.step, event.data.attempt);
      this.#writing.delete(event.data.step);
    }
    if (isTerminal(event)) this.#writing.clear();
    this.#showSoon();
  }

  #hear(message: LiveMessage): void {
    if (message.event !== 'token') return;
    const { node, step, attempt, turn, offset: from, text } = message;
    if (attempt <= (this.#endedAttempts.get(step) ?? 0)) return;
    const known = this.#writing.get(step);
    const isOfIt = known !== undefined && known.attempt === attempt && known.turn === turn;
    const isNext = isOfIt && from === known.from + known.text.length;
    this.#writing.set(step, isNext ? { ...known, text: known.text + text } : { node, step, attempt, turn, from, text });
    this.#showSoon();
  }

  #showSoon(): void {
    if (this.#isFrameAsked) return;
    this.#isFrameAsked = true;
    this.#frame(() => {
      this.#isFrameAsked = false;
      batch(() => {
        this.head.value = this.record.head;
        this.tokens.value = [...this.#writing.values()];
      });
    });
  }

  #numberIn(name: string): number | null {
    const text = this.#place.query.value.get(name);
    return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
  }

  /** The time that counts at an event: it moves on only at the head of a run that is under way. */
  #nowAt(seq: number): string {
    const isMoving = this.source.isLive && seq >= this.head.value && !this.isOver.value;
    const { at = '' } = this.record.events[seq] ?? {};
    return isMoving ? new Date(this.#clock.value).toISOString() : at;
  }

  #summaryAt(head: number): RunSummary | null {
    const state = this.record.stateAt(head);
    const now = this.record.momentAt(head);
    if (state === null || now === null) return null;
    const { inputTopic: topic, blueprintName: council, blueprintId, godMode, actor, parent } = state.request;
    const endedAt = 'completedAt' in state.phase ? state.phase.completedAt : null;
    return { topic, council, blueprintId, isGodMode: godMode, actor, parent, endedAt, createdAt: state.createdAt, now };
  }
}

/** Kinds of events that are gone to in one stride. */
const STRIDES: readonly Stop['kind'][] = ['draft', 'decision'];

function stopAt({ seq, type, data }: RunEvent): Stop | null {
  const plain = { seq, node: null, score: null };
  switch (type) {
    case 'NodeCompleted': {
      const { node, output } = data;
      return 'score' in output ? { seq, kind: 'score', node, score: output.score } : { ...plain, kind: 'draft', node };
    }
    case 'NodeFailed':
      return { ...plain, kind: 'failure', node: data.node };
    case 'RunPaused':
      return { ...plain, kind: 'pause' };
    case 'GateDecided':
      return { ...plain, kind: 'decision' };
    case 'RunCompleted':
    case 'RunFailed':
      return { ...plain, kind: 'end' };
    default:
      return null;
  }
}
