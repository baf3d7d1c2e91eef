/** The plan of a history from its seed: faults and requests. */
import type { Graph, RunBudget } from '../../src/generated/schemas.js';
import { COUNCIL_GRAPHS, GRAPHS, PANEL_GRAPHS, PLAIN_GRAPHS, SINGLE_MINDS } from './graphs.js';
import type { AppendFault } from './simulated-log.js';
import { Draws } from './scheduler.js';

/** Faults of the next append to a run, see `AppendFault`. */
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

/** Faults of what calls cost. */
const COST_FAULTS = [
  /** The model reports no usage, or more than its calls have reserved. */
  'usage-unknown',
  'usage-above',
  /** Each call's first request breaks off, and is made again. */
  'stream-broken',
  /** The server breaks connections: an outage whose requests may have been billed. */
  'connection-lost',
] as const;

const MODEL_FAULTS = ['model-unavailable', 'model-hangs', 'model-nonsense', 'model-refuses'] as const;

/** Faults that a plan draws. The engine must survive them. It cannot survive `append-forgotten`. */
const DRAWN_FAULTS = [
  ...AT_APPENDS,
  /** The process dies, with or without its folder, or stops as by SIGTERM. Another one starts later. */
  'crash',
  'crash-without-folder',
  'stop',
  /** The process stops running for a while. */
  'freeze',
  /** The instance cannot reach the log. */
  'partition',
  'slow-log',
  /** Subscriptions deliver nothing, but the log answers. */
  'deaf',
  /** The process dies after its next write of view rows. */
  'crash-at-rows',
  'subscription-dropped',
  'events-repeated',
  'clock-ahead',
  'clock-back',
  ...MODEL_FAULTS,
] as const;

/** Every fault of a plan. */
export const FAULT_KINDS = [...DRAWN_FAULTS, ...COST_FAULTS] as const;

export type FaultKind = (typeof FAULT_KINDS)[number] | 'append-forgotten';

/** Faults after which another instance may take over. */
export const TAKEOVER_FAULTS: ReadonlySet<FaultKind> = new Set<FaultKind>([
  ...(['crash', 'crash-without-folder', 'stop', 'freeze', 'partition', 'slow-log'] as const),
  ...(['append-dies-after', 'append-dies-before', 'crash-at-rows'] as const),
]);

/** A fault of an instance, or of the models of all, at a virtual time in milliseconds. */
export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly slot: number;
  readonly forMs: number;
  /** The only model that has this fault. Absent: all. */
  readonly mind?: string;
}

export function appendFaultOf(kind: FaultKind): AppendFault | null {
  return isOfAppend(kind) ? APPEND_FAULTS[kind] : null;
}

function isOfAppend(kind: FaultKind): kind is keyof typeof APPEND_FAULTS {
  return Object.hasOwn(APPEND_FAULTS, kind);
}

/** A client's request; `twin` is a start that is sent to two instances at once. */
export interface Request {
  readonly kind: 'start' | 'twin' | 'cancel' | 'fork' | 'poll' | 'watch' | 'list';
  readonly atMs: number;
  readonly slot: number;
  /** Number of the run; for a fork, of the new run. */
  readonly run: number;
  /** Number of the run that is forked. */
  readonly parent: number;
}

export interface PlannedRun {
  readonly graph: string;
  readonly godMode: boolean;
  /** Whether its nodes may search the web and documents. */
  readonly hasTools: boolean;
  /** Limit of node executions. */
  readonly budget: number;
  /** The budget of its calls. Absent: none. */
  readonly spending?: RunBudget | undefined;
}

/** Durations of a history in virtual milliseconds. */
export interface Pace {
  /** Time between two heartbeats, and silence after which an instance is suspected. */
  readonly cluster: { readonly heartbeatMs: number; readonly suspectAfterMs: number };
  /** Longest delivery of a message, except over a slow line. */
  readonly latencyMs: number;
  /** Longest answer of a model. */
  readonly modelMs: number;
  /** Longest delay of a late decision. */
  readonly decisionMs: number;
  /** Time of the repair, when all faults end. */
  readonly repairedMs: number;
}

/** A complete plan: it always gives the same history. */
export interface Plan {
  readonly seed: number;
  /** Whether the end checks each run by id and verifies it, besides the list. */
  readonly isVerified: boolean;
  readonly pace: Pace;
  /** Speed of each instance's clocks. */
  readonly rates: readonly number[];
  /** False for a single instance on its own log. */
  readonly isCluster: boolean;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  readonly modelOutageMs: number;
  readonly runs: readonly PlannedRun[];
  readonly requests: readonly Request[];
  readonly faults: readonly Fault[];
}

/** The durations of wide plans. */
export const WIDE: Pace = {
  cluster: { heartbeatMs: 1_000, suspectAfterMs: 6_000 },
  latencyMs: 1_500,
  modelMs: 900,
  decisionMs: 4_000,
  repairedMs: 12_000,
};

/** Most bugs need one run and one or two faults, so nine of ten plans are brief and the tenth is wide. */
export function planOf(seed: number): Plan {
  const drawn = deliberating(seed % 10 === 0 ? widePlanOf(seed) : briefPlanOf(seed), new Draws(seed + 41));
  const plan = nesting(drawn, new Draws(seed + 43));
  // Uses separate draws, so that the rest of the plan does not depend on them.
  const draws = new Draws(seed + 29);
  const budgets = new Draws(seed + 37);
  const runs = plan.runs.map((run) => {
    const isLarge = Object.hasOwn(PANEL_GRAPHS, run.graph) || Object.hasOwn(COUNCIL_GRAPHS, run.graph);
    const size = isLarge ? budgets.whole(1, 5) : 1;
    return { ...run, hasTools: draws.chance(TOOLS_SHARE), spending: spendingOf(budgets, size) };
  });
  const faults = [...plan.faults, ...costFaultsOf(plan, budgets)];
  return { ...plan, runs, faults, requests: [...plan.requests, ...listsOf(plan, new Draws(seed + 31))] };
}

/** Gives four of ten plans runs with panels, ranks, judges and juries, and most faults of models to one member. */
function deliberating(plan: Plan, draws: Draws): Plan {
  if (!draws.chance(PANELS_SHARE)) return plan;
  const names = Object.keys(PANEL_GRAPHS).filter((each) => each !== RULED);
  const chosen = new Map<PlannedRun, PlannedRun>();
  for (const run of plan.runs) {
    const isRuled = GRAPHS[run.graph]?.approvals !== undefined;
    const graph = isRuled ? RULED : (names[draws.whole(0, names.length - 1)] ?? 'panel');
    // A fork has the graph of its parent.
    if (!chosen.has(run)) chosen.set(run, { ...run, graph });
  }
  const runs = plan.runs.map((run) => chosen.get(run) ?? run);
  const faults = [...plan.faults, ...memberFaultsOf(plan, draws)].map((fault) => {
    return fault.kind.startsWith('model-') && draws.chance(0.7) ? { ...fault, mind: draws.pick(SINGLE_MINDS) } : fault;
  });
  return { ...plan, runs, faults };
}

/** A fault of the models soon after a start, so that the first panel meets it. */
function memberFaultsOf({ requests }: Plan, draws: Draws): readonly Fault[] {
  if (!draws.chance(0.6)) return [];
  const atMs = (requests[draws.whole(0, requests.length - 1)]?.atMs ?? 0) + draws.random() * 300;
  return [{ kind: draws.pick(MODEL_FAULTS), atMs, slot: 0, forMs: 500 + draws.random() * 4_000 }];
}

/** Share of plans with panels. */
/** Gives one of six plans runs with councils in councils. */
function nesting(plan: Plan, draws: Draws): Plan {
  if (!draws.chance(COUNCILS_SHARE)) return plan;
  const names = Object.keys(COUNCIL_GRAPHS);
  const chosen = new Map<PlannedRun, PlannedRun>();
  for (const run of plan.runs) {
    // A fork has the graph of its parent.
    if (!chosen.has(run)) chosen.set(run, { ...run, graph: names[draws.whole(0, names.length - 1)] ?? 'each' });
  }
  return { ...plan, runs: plan.runs.map((run) => chosen.get(run) ?? run) };
}

const COUNCILS_SHARE = 1 / 6;
const PANELS_SHARE = 0.4;

/** The panel graph whose pauses have approvers. */
const RULED = 'ruled';

/** Up to two requests that list all runs. */
function listsOf({ rates, requests }: Plan, draws: Draws): readonly Request[] {
  const lastMs = Math.max(...requests.map(({ atMs }) => atMs));
  return Array.from({ length: draws.whole(0, 2) }, (): Request => {
    const atMs = draws.random() * (lastMs + 2_000);
    return { kind: 'list', atMs, slot: draws.whole(0, rates.length - 1), run: 0, parent: 0 };
  });
}

/** US dollars of each token. */
export const TOKEN_USD = 1e-6;

/** The budget of a run: for none to three calls at once times `size`, in tokens or US dollars. */
function spendingOf(draws: Draws, size: number): RunBudget | undefined {
  if (!draws.chance(BUDGET_SHARE)) return undefined;
  const tokens = size * draws.whole(6_000, 26_000);
  const onExceeded = draws.pick(['pause', 'pause', 'fail', 'finish'] as const);
  return draws.chance(0.3) ? { usd: tokens * TOKEN_USD, tokens: null, onExceeded } : { usd: null, tokens, onExceeded };
}

function costFaultsOf({ requests }: Plan, draws: Draws): readonly Fault[] {
  if (!draws.chance(0.3)) return [];
  const atMs = requests[draws.whole(0, requests.length - 1)]?.atMs ?? 0;
  return [{ kind: draws.pick(COST_FAULTS), atMs, slot: 0, forMs: 200 + draws.random() * 2_000 }];
}

/** Share of runs with a budget. */
const BUDGET_SHARE = 0.3;

/** Share of runs with tools. */
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
    // Faults of appends find most bugs, above all those of the append that starts a run.
    const isAtAppend = draws.chance(0.35);
    const kind = draws.pick<FaultKind>(isAtAppend ? AT_APPENDS : DRAWN_FAULTS);
    const met = isAtAppend && draws.chance(0.4) ? requests[draws.whole(0, requests.length - 1)] : undefined;
    const forMs = 200 + draws.random() * draws.random() * 9_000;
    const { atMs, slot: at } = met ?? { atMs: draws.random() * 4_500, slot: slot() };
    return { kind, atMs, slot: at, forMs };
  });
  return {
    seed,
    isVerified: true,
    pace: WIDE,
    rates,
    isCluster,
    runs,
    requests,
    faults,
    maxActiveRuns: draws.chance(0.25) ? draws.whole(1, 2) : 100,
    maxModelCalls: draws.chance(0.3) ? 1 : 8,
    modelOutageMs: draws.pick([0, 2_000, 6_000]),
  };
}

/** Runs and their requests. */
function requestsOf(draws: Draws, slot: () => number): Pick<Plan, 'runs' | 'requests'> {
  const names = Object.keys(PLAIN_GRAPHS);
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

/** Time of the repair of a brief history: before or after an instance can be suspected. */
const MENDED_MS = { soon: 2_500, late: 6_500 };

/** One or two runs, their requests, and one to four faults close to them. */
function briefPlanOf(seed: number): Plan {
  const draws = new Draws(seed);
  const isCluster = draws.chance(0.6);
  const slots = isCluster ? (draws.chance(0.1) ? 3 : 2) : 1;
  const rates = Array.from({ length: slots }, () => (draws.chance(0.2) ? 0.9 + draws.random() * 0.2 : 1));
  const slot = (): number => draws.whole(0, slots - 1);
  const { runs, requests } = briefRequestsOf(draws, slot);
  const faults = Array.from({ length: draws.whole(1, 4) }, () => briefFaultOf(draws, requests, slot));
  const isDeadly = faults.some(({ kind }) => TAKEOVER_FAULTS.has(kind));
  return {
    seed,
    isVerified: draws.chance(0.2),
    rates,
    isCluster,
    runs,
    requests,
    faults,
    pace: {
      cluster: { heartbeatMs: 1_250, suspectAfterMs: 4_000 },
      latencyMs: 400,
      modelMs: 300,
      decisionMs: 1_000,
      repairedMs: isDeadly && draws.chance(0.5) ? MENDED_MS.late : MENDED_MS.soon,
    },
    // With one slot the second run waits for the first.
    maxActiveRuns: draws.chance(runs.length > 1 ? 0.5 : 0.1) ? 1 : 100,
    maxModelCalls: draws.chance(0.3) ? 1 : 8,
    modelOutageMs: draws.pick([0, 1_000, 3_000]),
  };
}

function briefFaultOf(draws: Draws, requests: readonly Request[], slot: () => number): Fault {
  const isAtAppend = draws.chance(0.45);
  const kind = draws.pick<FaultKind>(isAtAppend ? AT_APPENDS : DRAWN_FAULTS);
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
