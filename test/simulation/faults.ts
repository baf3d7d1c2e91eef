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
export const FAULT_KINDS = [
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

/** For which an instance may be taken for dead. */
export const DEADLY: ReadonlySet<FaultKind> = new Set<FaultKind>([
  ...(['crash', 'crash-without-folder', 'stop', 'freeze', 'partition', 'slow-log'] as const),
  ...(['append-dies-after', 'append-dies-before', 'crash-at-rows'] as const),
]);

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
  readonly kind: 'start' | 'twin' | 'cancel' | 'fork' | 'poll' | 'watch' | 'list';
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
  /** Whether its nodes may search the web and documents. */
  readonly hasTools: boolean;
  /** Node executions at which it is ended. */
  readonly budget: number;
}

/** How fast things go in a history, in virtual milliseconds. */
export interface Pace {
  /** Between two beats, and the silence after which an instance is suspected. */
  readonly cluster: { readonly heartbeatMs: number; readonly suspectAfterMs: number };
  /** Longest that a message is on its way, but for a line made slow. */
  readonly latencyMs: number;
  /** Longest that a model thinks. */
  readonly modelMs: number;
  /** Longest that a human who decides late takes. */
  readonly decisionMs: number;
  /** Faults have begun before, and all are over then. */
  readonly mendedMs: number;
}

/** One history, whole: the same plan gives the same history. */
export interface Plan {
  readonly seed: number;
  /** Whether each run is asked for by id and verified in the end, and not only listed. */
  readonly isVerified: boolean;
  readonly pace: Pace;
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

const BRIEF_GRAPHS: Readonly<Record<string, Graph>> = {
  pair: graphOf('one -> two', NODE),
  'brief-quorum': { ...graphOf('only', NODE), approvals: { ...QUORUM, deadline: { after_ms: 800, then: 'approve' } } },
  'brief-rejecting': {
    ...graphOf('only', NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 500, then: 'reject' } },
  },
  'brief-escalating': {
    ...graphOf('only', NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 400, then: { escalate: ['cat', 'dan'] } } },
  },
};

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
  ...BRIEF_GRAPHS,
};

/** Of the plans that have room for everything. */
export const WIDE: Pace = {
  cluster: { heartbeatMs: 1_000, suspectAfterMs: 6_000 },
  ...{ latencyMs: 1_500, modelMs: 900, decisionMs: 4_000, mendedMs: 12_000 },
};

/** Most faults of a service need one run and one or two of the world's: nine of ten plans are brief, and the tenth is wide. */
export function planOf(seed: number): Plan {
  const plan = seed % 10 === 0 ? widePlanOf(seed) : briefPlanOf(seed);
  // Drawn apart: what else is in a plan does not depend on it.
  const draws = new Draws(seed + 29);
  const runs = plan.runs.map((run) => ({ ...run, hasTools: draws.chance(TOOLS_SHARE) }));
  return { ...plan, runs, requests: [...plan.requests, ...listsOf(plan, new Draws(seed + 31))] };
}

/** Up to two requests that list all runs. */
function listsOf({ rates, requests }: Plan, draws: Draws): readonly Request[] {
  const lastMs = Math.max(...requests.map(({ atMs }) => atMs));
  return Array.from({ length: draws.whole(0, 2) }, (): Request => {
    const atMs = draws.random() * (lastMs + 2_000);
    return { kind: 'list', atMs, slot: draws.whole(0, rates.length - 1), run: 0, parent: 0 };
  });
}

/** Of the runs. */
const TOOLS_SHARE = 0.15;

/** A graph whose nodes may use every tool. */
export function withTools(graph: Graph): Graph {
  return { ...graph, nodes: graph.nodes.map((node) => ({ ...node, tools: { webSearch: true, pdfReader: true } })) };
}

function widePlanOf(seed: number): Plan {
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
    ...{ seed, isVerified: true, pace: WIDE, rates, isCluster, runs, requests, faults },
    maxActiveRuns: draws.chance(0.25) ? draws.whole(1, 2) : 100,
    maxModelCalls: draws.chance(0.3) ? 1 : 8,
    modelOutageMs: draws.pick([0, 2_000, 6_000]),
  };
}

/** Some runs, and what clients do with them. */
function requestsOf(draws: Draws, slot: () => number): Pick<Plan, 'runs' | 'requests'> {
  const names = Object.keys(GRAPHS).filter((each) => !Object.hasOwn(BRIEF_GRAPHS, each));
  const runs: PlannedRun[] = [];
  const requests: Request[] = [];
  const ask = (kind: Request['kind'], fields: Omit<Request, 'kind' | 'slot'>): void =>
    void requests.push({ kind, slot: slot(), ...fields });
  for (let run = draws.whole(1, 3); run > 0; run -= 1) {
    const index = runs.length;
    const graph = names[draws.whole(0, names.length - 1)] ?? 'line';
    const isRuled = GRAPHS[graph]?.approvals !== undefined;
    const budget = draws.chance(0.1) ? draws.whole(2, 5) : 50;
    runs.push({ graph, hasTools: false, godMode: isRuled || draws.chance(0.2), budget });
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

const BRIEF_NAMES = [
  ...(['one', 'pair', 'line', 'fork', 'critic'] as const),
  ...(['brief-quorum', 'brief-rejecting', 'brief-escalating'] as const),
] as const;

/** After which a brief history is mended: sooner than an instance is suspected, or later. */
const MENDED_MS = { soon: 2_500, late: 6_500 };

/** A run or two, what clients do with them, and one to three faults where something is going on. */
function briefPlanOf(seed: number): Plan {
  const draws = new Draws(seed);
  const isCluster = draws.chance(0.6);
  const slots = isCluster ? (draws.chance(0.1) ? 3 : 2) : 1;
  const rates = Array.from({ length: slots }, () => (draws.chance(0.2) ? 0.9 + draws.random() * 0.2 : 1));
  const slot = (): number => draws.whole(0, slots - 1);
  const { runs, requests } = briefRequestsOf(draws, slot);
  const faults = Array.from({ length: draws.whole(1, 4) }, () => briefFaultOf(draws, requests, slot));
  const isDeadly = faults.some(({ kind }) => DEADLY.has(kind));
  return {
    ...{ seed, isVerified: draws.chance(0.2), rates, isCluster, runs, requests, faults },
    pace: {
      cluster: { heartbeatMs: 1_250, suspectAfterMs: 4_000 },
      ...{ latencyMs: 400, modelMs: 300, decisionMs: 1_000 },
      mendedMs: isDeadly && draws.chance(0.5) ? MENDED_MS.late : MENDED_MS.soon,
    },
    // Runs that wait for each other are taken up by whoever comes first.
    maxActiveRuns: draws.chance(runs.length > 1 ? 0.5 : 0.1) ? 1 : 100,
    maxModelCalls: draws.chance(0.3) ? 1 : 8,
    modelOutageMs: draws.pick([0, 1_000, 3_000]),
  };
}

function briefFaultOf(draws: Draws, requests: readonly Request[], slot: () => number): Fault {
  const isAtAppend = draws.chance(0.45);
  const kind = draws.pick<FaultKind>(isAtAppend ? AT_APPENDS : FAULT_KINDS);
  const met = draws.chance(0.4) ? requests[draws.whole(0, requests.length - 1)] : undefined;
  const forMs = 200 + draws.random() * draws.random() * 6_000;
  const sinceMs = isAtAppend ? 0 : draws.random() * 100;
  if (met !== undefined) return { kind, atMs: met.atMs + sinceMs, slot: met.slot, forMs };
  return { kind, atMs: draws.random() * 1_500, slot: slot(), forMs };
}

function briefRequestsOf(draws: Draws, slot: () => number): Pick<Plan, 'runs' | 'requests'> {
  const runs: PlannedRun[] = [];
  const requests: Request[] = [];
  const ask = (kind: Request['kind'], fields: Omit<Request, 'kind' | 'slot'>): void =>
    void requests.push({ kind, slot: slot(), ...fields });
  for (let run = draws.chance(0.25) ? 2 : 1; run > 0; run -= 1) {
    const index = runs.length;
    const graph = draws.pick<string>(BRIEF_NAMES);
    const isRuled = GRAPHS[graph]?.approvals !== undefined;
    const budget = draws.chance(0.15) ? draws.whole(1, 4) : 50;
    runs.push({ graph, hasTools: false, godMode: isRuled || draws.chance(0.15), budget });
    const startedMs = draws.random() * 300;
    const at = { run: index, parent: index };
    ask(draws.chance(0.25) ? 'twin' : 'start', { atMs: startedMs, ...at });
    if (draws.chance(0.4)) ask('watch', { atMs: startedMs + draws.random() * 400, ...at });
    if (draws.chance(0.25)) ask('poll', { atMs: startedMs + draws.random() * 1_000, ...at });
    if (draws.chance(0.25)) ask('cancel', { atMs: startedMs + draws.random() * 800, ...at });
  }
  if (draws.chance(0.1)) {
    const [parent] = runs;
    if (parent !== undefined) runs.push(parent);
    ask('fork', { atMs: 200 + draws.random() * 1_200, run: runs.length - 1, parent: 0 });
  }
  return { runs, requests };
}
