/** One run on the page: its growing record, and the event shown. */
import type { ReadonlySignal } from '@preact/signals';
import { batch, computed, signal } from '@preact/signals';
import type { RunEvent } from '../../../client/run-events.js';
import { isTerminal } from '../../../client/run-events.js';
import type { LiveMessage } from '../../../client/tokens.js';
import type { GraphNode, ParentRun } from '../../../generated/schemas.js';
import type { ExecutionTrace } from '../../record/executions.js';
import { traceAt } from '../../record/executions.js';
import type { GraphView } from '../../record/graph.js';
import { graphViewAt } from '../../record/graph.js';
import type { RunSnapshot } from '../../record/run-record.js';
import { RunRecord } from '../../record/run-record.js';
import type { Timeline } from '../../record/timeline.js';
import { timelineAt } from '../../record/timeline.js';
import { lettersIn, namesIn } from '../../record/labels.js';
import type { Landmark } from '../../record/landmarks.js';
import { landmarkAt } from '../../record/landmarks.js';
import type { Names } from '../../record/page-words.js';
import { eventText } from '../../record/event-text.js';
import type { Source } from '../../../draft/sources.js';
import type { DraftSource } from '../../../generated/schemas.js';
import { areSame, keyOf, sourcesAt, sourcesOf, withInherited } from '../../../draft/sources.js';
import type { RunPlace, RunSource } from './source.js';
import type { RunTab } from './tabs.js';
import { STEP_TABS, tabIn } from './tabs.js';
import type { Writing } from './writings.js';
import { Writings } from './writings.js';

export interface RunStoreDeps {
  readonly source: RunSource;
  readonly place: RunPlace;
  /** In milliseconds since 1970. */
  readonly clock: ReadonlySignal<number>;
  /** Calls `show` before the next paint, so that events of one frame render together. */
  readonly frame: (show: () => void) => void;
}

/** The view of the graph: `is` shows the council, `ran` the executed steps. */
export type RunView = 'is' | 'ran';

/** What a draft cites, and its quotations. */
export interface Cited {
  /** Or null before it is known. */
  readonly draft: string | null;
  readonly sources: readonly DraftSource[];
}

/** The run at its head, for the head of the page. */
export interface RunSummary {
  /** The requested topic. */
  readonly topic: string;
  /** Name of the blueprint, or null for the built-in council. */
  readonly council: string | null;
  readonly blueprintId: string | null;
  readonly isGodMode: boolean;
  /** Name of the key that started it, or null if the service had no keys. */
  readonly actor: string | null;
  /** Names of the keys that started the runs it was forked from; absent if there are none. */
  readonly earlierStarters?: readonly string[];
  readonly createdAt: string;
  readonly endedAt: string | null;
  /** The parent of a fork and the event there, or null. */
  readonly parent: { readonly runId: string; readonly at: number } | null;
  /** The run that has started it for a council, which alone can cancel it, or null. */
  readonly parentRun: ParentRun | null;
  /** The snapshot at the head. */
  readonly now: RunSnapshot;
}

/** One run on the page. What depends on the growing record must read `head` or a value computed from it. */
export class RunStore {
  readonly source: RunSource;
  readonly record = new RunRecord();
  readonly #place: RunPlace;
  readonly #clock: ReadonlySignal<number>;
  readonly #frame: RunStoreDeps['frame'];

  /** `seq` of the last event, or -1. */
  readonly head = signal(-1);
  /** Drafts that are being written. */
  readonly tokens = signal<readonly Writing[]>([]);
  /** Why the events cannot be loaded, or null. */
  readonly fault = signal<unknown>(null);
  /** The file names of the documents that tools have found, by id, as far as they are known. */
  readonly documentNames = signal<ReadonlyMap<string, string>>(new Map());
  readonly #stops: Landmark[] = [];
  readonly #writings = new Writings();
  #isFrameAsked = false;

  constructor({ source, place, clock, frame }: RunStoreDeps) {
    this.source = source;
    this.#place = place;
    this.#clock = clock;
    this.#frame = frame;
  }

  /** The selected event, or null to follow the head. */
  readonly at = computed(() => this.#numberIn('at'));
  /** The event shown, or -1 before the first. */
  readonly shown: ReadonlySignal<number> = computed(() => Math.min(this.at.value ?? Infinity, this.head.value));
  readonly isOver = computed(() => {
    const last = this.record.events[this.head.value];
    return last !== undefined && isTerminal(last);
  });
  /** Whether the page follows the head of a live run. */
  readonly isFollowing = computed(() => this.at.value === null && this.source.isLive && !this.isOver.value);

  /** The snapshot at the event shown, or null before the first. */
  readonly snapshot: ReadonlySignal<RunSnapshot | null> = computed(() => this.record.snapshotAt(this.shown.value));
  /** The trace up to the event shown. */
  readonly trace: ReadonlySignal<ExecutionTrace | null> = computed(() =>
    traceAt(this.record, this.shown.value, this.#nowAt(this.shown.value)),
  );
  /** The trace up to the head. It decides the layout, so that nodes do not move between events. */
  readonly fullTrace: ReadonlySignal<ExecutionTrace | null> = computed(() =>
    traceAt(this.record, this.head.value, this.#nowAt(this.head.value)),
  );
  /** The graph at the event shown. */
  readonly graph: ReadonlySignal<GraphView | null> = computed(() =>
    graphViewAt(this.record, this.shown.value, this.trace.value),
  );
  /** The timeline up to the head. */
  readonly timeline: ReadonlySignal<Timeline | null> = computed(() =>
    timelineAt(this.record, this.head.value, this.#nowAt(this.head.value)),
  );
  readonly landmarks: ReadonlySignal<readonly Landmark[]> = computed(() => {
    const head = this.head.value;
    return this.#stops.filter(({ seq }) => seq <= head);
  });
  /** The last snapshot with the previous draft, or null if there is none. */
  readonly draftBefore: ReadonlySignal<RunSnapshot | null> = computed(() => {
    const [shown, draft] = [this.shown.value, this.snapshot.value?.draft ?? null];
    for (const { seq, kind } of this.#stops.toReversed()) {
      if (seq > shown || !STRIDES.includes(kind)) continue;
      const before = this.record.snapshotAt(seq - 1);
      if (before !== null && before.draft !== null && before.draft !== draft) return before;
    }
    return null;
  });
  /** The text that the run works on, empty if it has none. */
  readonly material = computed(() => this.record.stateAt(this.head.value)?.request.material ?? '');
  readonly summary: ReadonlySignal<RunSummary | null> = computed(() => this.#summaryAt(this.head.value));

  readonly view: ReadonlySignal<RunView> = computed(() =>
    this.#place.query.value.get('view') === 'ran' ? 'ran' : 'is',
  );
  readonly tab: ReadonlySignal<RunTab> = computed(() => tabIn(this.#place.query.value));
  /** The selected step, or null. */
  readonly selectedStep = computed(() => this.#numberIn('step'));
  /** The selected member of that step, or null. */
  readonly selectedMember = computed(() => this.#place.query.value.get('member'));
  /** The set-up of the selected node: one chosen in the graph, run or not, or that of the selected step. */
  readonly selectedNode: ReadonlySignal<GraphNode | null> = computed(() => {
    const step = this.selectedStep.value;
    const ran = this.fullTrace.value?.executions.find((each) => each.step === step)?.node;
    const id = this.#place.query.value.get('node') ?? ran ?? null;
    const plan = this.record.stateAt(this.head.value)?.plan;
    return id !== null && plan?.hasNode(id) === true ? plan.node(id) : null;
  });
  /** The event to compare the draft with, or null for the previous draft. */
  readonly comparedWith = computed(() => this.#numberIn('with'));

  /** What a draft cites, and its quotations. */
  readonly cited = signal<Cited>({ draft: null, sources: [] });
  /** Pages that the draft cites and that only parents of the run have read, as far as they are known. */
  readonly #inherited = computed(() => {
    const own = new Set(sourcesAt(this.record.events, this.head.value).map(keyOf));
    return this.cited.value.sources.flatMap(sourcesOf).filter((source) => !own.has(keyOf(source)));
  });
  /** What the tools have found up to the event shown, and what the run has inherited. */
  readonly sources: ReadonlySignal<readonly Source[]> = computed(() => {
    const own = sourcesAt(this.record.events, this.shown.value);
    const found = withInherited(own, this.#inherited.value);
    // The same value, so that drafts are not rendered at each event.
    if (!areSame(found, this.#sources)) this.#sources = found;
    return this.#sources;
  });
  #sources: readonly Source[] = [];

  /** The labels of nodes and members. */
  readonly names: ReadonlySignal<Names> = computed(() => ({
    ...namesIn(this.#graph.value),
    letter: (step, letter) => this.#letters.value.get(step)?.get(letter) ?? letter,
  }));
  /** The labels behind the letters that reviewers saw, by step. */
  readonly #letters = computed(() => lettersIn(this.fullTrace.value));
  /** Whether a node runs another council. */
  readonly hasCouncils = computed(() => this.#graph.value?.nodes.some(({ role }) => role === 'council') === true);
  readonly #graph = computed(() => (this.head.value < 0 ? null : (this.record.stateAt(0)?.plan.graph ?? null)));

  /** The label of a node, or of one of its members with that of the node. */
  labelOf(node: string, member: string | null = null): string {
    const names = this.names.value;
    return member === null ? names.node(node) : `${names.member(node, member)} of ${names.node(node)}`;
  }

  /** An event as one sentence. */
  textOf(event: RunEvent): string {
    return eventText(event, this.names.value);
  }

  /** Follows the run; a second start continues after the last event. @returns stops following */
  start(): () => void {
    const ending = new AbortController();
    void this.#read(ending.signal);
    if (this.source.isLive) void this.#listen(ending.signal);
    return () => ending.abort();
  }

  /** Shows an event; follows the head for null or the last event. */
  goTo(seq: number | null): void {
    this.#place.setQuery({ at: seq === null || seq >= this.head.value ? null : Math.max(0, seq) });
  }

  /** Moves by a number of events, backwards if it is negative. */
  step(by: number): void {
    this.goTo(this.shown.value + by);
  }

  /** Moves to the next or previous draft or decision, or to the head or the first event. */
  stride(direction: 1 | -1): void {
    const [shown, landmarks] = [this.shown.value, this.landmarks.value.filter(({ kind }) => STRIDES.includes(kind))];
    if (direction === 1) this.goTo(landmarks.find(({ seq }) => seq > shown)?.seq ?? null);
    else this.goTo(landmarks.findLast(({ seq }) => seq < shown)?.seq ?? 0);
  }

  setView(view: RunView): void {
    this.#place.setQuery({ view: view === 'is' ? null : view });
  }

  setTab(tab: RunTab): void {
    // `tabIn` finds the draft without a tab, but for an old URL that names a view or a step.
    const isDefault = tab === 'draft' && !this.#place.query.value.has('view') && this.selectedStep.value === null;
    this.#place.setQuery({ tab: isDefault ? null : tab });
  }

  /** Selects a step, or none with null, and one of its members. Views without steps make room for the list of steps. */
  select(step: number | null, member: string | null = null): void {
    const { value: tab } = this.tab;
    this.#place.setQuery({ step, member, node: null, tab: step === null || STEP_TABS.includes(tab) ? tab : 'step' });
  }

  /** Selects a node of the graph with its last step, or none with null. @param step or null if it has not run */
  selectNode(node: string | null, step: number | null): void {
    this.#place.setQuery({ node, step, member: null, tab: this.tab.value });
  }

  /** Compares the draft with that of another event, or with the previous draft for null. */
  compareWith(seq: number | null): void {
    this.#place.setQuery({ with: seq });
  }

  async #read(ending: AbortSignal): Promise<void> {
    this.fault.value = null;
    try {
      for await (const event of this.source.events(this.record.head, ending)) this.#onEvent(event);
    } catch (error) {
      if (!ending.aborted) this.fault.value = error;
    }
  }

  async #listen(ending: AbortSignal): Promise<void> {
    try {
      for await (const message of this.source.tokens?.(ending) ?? []) this.#say(message);
    } catch {
      // The events bring each finished draft, and their stream reports the fault.
    }
  }

  #onEvent(event: RunEvent): void {
    if (!this.record.add(event)) return;
    const stop = landmarkAt(event);
    if (stop !== null) this.#stops.push(stop);
    this.#writings.end(event);
    this.#showSoon();
  }

  #say(message: LiveMessage): void {
    if (message.event === 'token' && this.#writings.add(message)) this.#showSoon();
  }

  #showSoon(): void {
    if (this.#isFrameAsked) return;
    this.#isFrameAsked = true;
    this.#frame(() => {
      this.#isFrameAsked = false;
      batch(() => {
        this.head.value = this.record.head;
        this.tokens.value = this.#writings.all;
      });
    });
  }

  #numberIn(name: string): number | null {
    const text = this.#place.query.value.get(name);
    return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
  }

  /** The time at an event: the clock at the head of a live run, else the time of the event. */
  #nowAt(seq: number): string {
    const isMoving = this.source.isLive && seq >= this.head.value && !this.isOver.value;
    const { at = '' } = this.record.events[seq] ?? {};
    return isMoving ? new Date(this.#clock.value).toISOString() : at;
  }

  #summaryAt(head: number): RunSummary | null {
    const state = this.record.stateAt(head);
    const now = this.record.snapshotAt(head);
    if (state === null || now === null) return null;
    const {
      inputTopic: topic,
      blueprintName: council,
      blueprintId,
      godMode,
      actor,
      parent,
      earlierStarters,
    } = state.request;
    const endedAt = 'completedAt' in state.phase ? state.phase.completedAt : null;
    return {
      topic,
      council,
      blueprintId,
      isGodMode: godMode,
      actor,
      parent,
      parentRun: state.parentRun,
      endedAt,
      createdAt: state.createdAt,
      now,
      ...(earlierStarters !== undefined && { earlierStarters }),
    };
  }
}

/** Landmarks for `stride`. */
const STRIDES: readonly Landmark['kind'][] = ['draft', 'decision'];
