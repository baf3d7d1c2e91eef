/** What is done to the instances in one history, and what their clients ask of them: all of it follows from a seed. */
import type { Graph } from '../../src/generated/schemas.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { graphOf } from '../support/given.js';
import type { AppendFault } from './simulated-log.js';
import { Draws } from './scheduler.js';

/** Of the next append to a run, see `AppendFault`. */
const APPEND_FAULTS: Readonly<Record<`append-${AppendFault}`, AppendFault>> = {
  'append-refused': 'refused',
  'append-lost': 'lost',
  'append-unanswered': 'unanswered',
  'append-late': 'late',
  'append-dies-before': 'dies-before',
  'append-dies-after': 'dies-after',
  'append-forgotten': 'forgotten',
};

const AT_APPENDS = [
  'append-refused',
  'append-lost',
  'append-unanswered',
  'append-late',
  'append-dies-before',
  'append-dies-after',
] as const;

/** What may be done in any history; a log that forgets is none that can be borne. */
const FAULT_KINDS = [
  ...AT_APPENDS,
  /** The process dies, with its folder lost or not; or is stopped as by SIGTERM. Another follows after a while. */
  'crash',
  'crash-without-folder',
  'stop',
  /** Stands still and comes back. */
  'freeze',
  /** Nothing passes between it and the log. */
  'partition',
  'slow-log',
  /** Hears nothing of the log, but is answered by it. */
  'deaf',
  /** The process dies as soon as it has written rows of its views. */
  'crash-at-rows',
  'subscription-dropped',
  'events-repeated',
  'clock-ahead',
  'clock-back',
  'model-unavailable',
  'model-hangs',
  'model-nonsense',
  'model-refuses',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number] | 'append-forgotten';

/** Something that is done to an instance, or to the model of all, at a time, in virtual milliseconds. */
export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly slot: number;
  readonly forMs: number;
}

export function appendFaultOf(kind: FaultKind): AppendFault | null {
  return isOfAppend(kind) ? APPEND_FAULTS[kind] : null;
}

function isOfAppend(kind: FaultKind): kind is keyof typeof APPEND_FAULTS {
  return Object.hasOwn(APPEND_FAULTS, kind);
}

/** What a client asks; `twin`: a start that is sent to two instances at once. */
export interface Request {
  readonly kind: 'start' | 'twin' | 'cancel' | 'fork' | 'poll' | 'watch';
  readonly atMs: number;
  readonly slot: number;
  /** Number of the run: of a fork that of the new one. */
  readonly run: number;
  /** Number of the run that is forked. */
  readonly parent: number;
}

export interface PlannedRun {
  readonly graph: string;
  readonly godMode: boolean;
  /** Node executions at which it is ended. */
  readonly budget: number;
}

/** One history, whole: the same plan gives the same history. */
export interface Plan {
  readonly seed: number;
  /** Speed of each instance's clocks. */
  readonly rates: readonly number[];
  /** False: one instance, which knows that it is alone. */
  readonly isCluster: boolean;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  readonly modelOutageMs: number;
  readonly runs: readonly PlannedRun[];
  readonly requests: readonly Request[];
  readonly faults: readonly Fault[];
}

const NODE = { timeoutMs: 1_500, maxAttempts: 3 };
const QUORUM = { by: ['ann', 'bob', 'cat'], quorum: 2 };
/** The built-in council, without its prompts: they make each record longer and nothing else. */
const FIXED = fixedGraph(NODE);
const LINE = 'one -> two; two -> three';

export const GRAPHS: Readonly<Record<string, Graph>> = {
  fixed: { ...FIXED, nodes: FIXED.nodes.map((node) => ({ ...node, systemPrompt: '' })) },
  one: graphOf('only', NODE),
  line: graphOf(LINE, NODE),
  fork: graphOf('plan -> left, right; left, right -> join', NODE),
  critic: graphOf('write -> judge?; judge -approve-> polish; judge -rework-> write', NODE),
  quorum: { ...graphOf(LINE, NODE), approvals: { ...QUORUM, deadline: { after_ms: 2_500, then: 'approve' } } },
  rejecting: { ...graphOf(LINE, NODE), approvals: { ...QUORUM, deadline: { after_ms: 1_500, then: 'reject' } } },
  escalating: {
    ...graphOf(LINE, NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 1_000, then: { escalate: ['cat', 'dan'] } } },
  },
};

/** Faults begin within this time, in virtual milliseconds, and all are over at its end. */
export const FAULTS_MS = 12_000;

export function planOf(seed: number): Plan {
  const draws = new Draws(seed);
  const isCluster = draws.chance(0.8);
  const slots = isCluster ? draws.whole(2, 3) : 1;
  const rates = Array.from({ length: slots }, () => (draws.chance(0.3) ? 0.9 + draws.random() * 0.2 : 1));
  const slot = (): number => draws.whole(0, slots - 1);
  const { runs, requests } = requestsOf(draws, slot);
  const faults = Array.from({ length: draws.whole(0, 7) }, (): Fault => {
    // What becomes of an append decides most, and of the one that starts a run.
    const isAtAppend = draws.chance(0.35);
    const kind = draws.pick<FaultKind>(isAtAppend ? AT_APPENDS : FAULT_KINDS);
    const met = isAtAppend && draws.chance(0.4) ? requests[draws.whole(0, requests.length - 1)] : undefined;
    const forMs = 200 + draws.random() * draws.random() * 9_000;
    const { atMs, slot: at } = met ?? { atMs: draws.random() * 4_500, slot: slot() };
    return { kind, atMs, slot: at, forMs };
  });
  return {
    ...{ seed, rates, isCluster, runs, requests, faults },
    maxActiveRuns: draws.chance(0.25) ? draws.whole(1, 2) : 100,
    maxModelCalls: draws.chance(0.3) ? 1 : 8,
    modelOutageMs: draws.pick([0, 2_000, 6_000]),
  };
}

/** Some runs, and what clients do with them. */
function requestsOf(draws: Draws, slot: () => number): Pick<Plan, 'runs' | 'requests'> {
  const names = Object.keys(GRAPHS);
  const runs: PlannedRun[] = [];
  const requests: Request[] = [];
  const ask = (kind: Request['kind'], fields: Omit<Request, 'kind' | 'slot'>): void =>
    void requests.push({ kind, slot: slot(), ...fields });
  for (let run = draws.whole(1, 3); run > 0; run -= 1) {
    const index = runs.length;
    const graph = names[draws.whole(0, names.length - 1)] ?? 'line';
    const isRuled = GRAPHS[graph]?.approvals !== undefined;
    const budget = draws.chance(0.1) ? draws.whole(2, 5) : 50;
    runs.push({ graph, godMode: isRuled || draws.chance(0.2), budget });
    const startedMs = draws.random() * 3_000;
    const at = { run: index, parent: index };
    ask(draws.chance(0.3) ? 'twin' : 'start', { atMs: startedMs, ...at });
    if (draws.chance(0.6)) ask('watch', { atMs: startedMs + draws.random() * 500, ...at });
    if (draws.chance(0.5)) ask('poll', { atMs: startedMs + draws.random() * 4_000, ...at });
    if (draws.chance(0.2)) ask('cancel', { atMs: startedMs + draws.random() * 3_000, ...at });
  }
  if (draws.chance(0.25)) {
    const parent = draws.whole(0, runs.length - 1);
    const forked = runs[parent];
    if (forked !== undefined) runs.push(forked);
    ask('fork', { atMs: 500 + draws.random() * 5_000, run: runs.length - 1, parent });
  }
  return { runs, requests };
}
