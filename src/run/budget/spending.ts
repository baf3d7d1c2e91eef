/**
 * What a run with a budget has spent and reserved, folded from its events, and what its next calls would reserve. A call
 * reserves its worst case when it is recorded; its usage replaces the reservation when it is answered. A call whose usage is
 * unknown, that was cut off or whose answer was discarded counts as its reservation.
 */
import type {
  CallUsage,
  ChildEndedData,
  Graph,
  GraphNode,
  NodeFailedData,
  Reservation,
  RunBudget,
} from '../../generated/schemas.js';
import type { ModelNaming } from '../../graph/models-asked.js';
import { modelsAsked } from '../../graph/models-asked.js';
import type { ModelPrice } from '../../models/prices.js';
import { mostCostOf } from '../../models/prices.js';
import type { ExactDollars } from '../../system/dollars.js';
import { dollarsDown, dollarsOf, dollarsUp, exactDollars } from '../../system/dollars.js';
import { callEndedBy } from '../effort.js';
import type { RunEvent } from '../events.js';

/** What calls cost, or what they may cost. Sums are exact. */
export interface Cost {
  readonly tokens: number;
  /** Null if a called model has no price. */
  readonly usd: ExactDollars | null;
}

/** A cost as events and answers have it: US dollars rounded up to 10^-12. */
export function reservationFor({ tokens, usd }: Cost): Reservation {
  return { tokens, usd: usd === null ? null : dollarsUp(usd) };
}

/** A recorded reservation. */
export function costReserved({ tokens, usd }: Reservation): Cost {
  return { tokens, usd: usd === null ? null : exactDollars(usd) };
}

export interface RunSpending {
  readonly budget: RunBudget;
  readonly spent: Cost;
  /** The calls in flight, by step. */
  readonly reserved: readonly CallInFlight[];
  /** The steps whose last attempt was stopped between two calls, and what a new attempt needs to come as far again. */
  readonly stopped: readonly Stopped[];
  /** Whether the run has paused for its budget, which opens its session. */
  readonly hasPaused: boolean;
}

/** A call to a model, or a run that a council has started, which reserves its share. */
interface CallInFlight {
  readonly step: number;
  /** Number of the item of a council's run; absent: a call. */
  readonly index?: number | undefined;
  /** As in Seat; absent: the step of a node. */
  readonly panelStep?: number | undefined;
  readonly reservation: Cost;
  /** The cost of the attempt's calls before it. */
  readonly before: Cost;
}

interface Stopped {
  readonly step: number;
  readonly needed: Cost;
}

const NOTHING: Cost = { tokens: 0, usd: 0n };

/** The spending of a run that begins with a budget. */
export function firstSpending(budget: RunBudget): RunSpending {
  return { budget, spent: NOTHING, reserved: [], stopped: [], hasPaused: false };
}

/** The spending after an event of a run with a budget. */
export function spendingAfter(spending: RunSpending, event: RunEvent): RunSpending {
  switch (event.type) {
    case 'NodeStarted':
      // An attempt that was cut off has no end: the next one settles its call.
      return withCall(withoutCall(withoutStop(spending, event.data.step), event.data.step, null), event.data);
    case 'CallReserved': {
      const { step, reserved } = event.data;
      const panelStep = spending.reserved.find((each) => each.step === step)?.panelStep;
      const before = costSoFar(spending, step, event.data);
      return withCall(withoutCall(spending, step, event.data), { step, panelStep, reserved, before });
    }
    case 'NodeCompleted':
      return withoutCall(spending, event.data.step, callEndedBy(event.data));
    case 'NodeFailed':
      return withStop(withoutCall(spending, event.data.step, callEndedBy(event.data)), spending, event.data);
    case 'ChildStarted':
      return withCall(spending, event.data);
    case 'ChildEnded':
      return withoutChild(spending, event.data);
    case 'PanelClosed':
      return withoutPanel(spending, event.data.panelStep);
    case 'RunPaused':
      return event.data.reason === 'budget' ? { ...withoutCalls(spending), hasPaused: true } : spending;
    case 'GateDecided':
      return { ...spending, budget: { ...spending.budget, ...event.data.budget } };
    case 'RunCompleted':
    case 'RunFailed':
      return withoutCalls(spending);
    default:
      // Other events cost nothing.
      return spending;
  }
}

function withCall(
  spending: RunSpending,
  {
    step,
    index,
    panelStep,
    reserved,
    before = NOTHING,
  }: Partial<Omit<CallInFlight, 'reservation'>> & { readonly step: number; readonly reserved?: Reservation },
): RunSpending {
  if (reserved === undefined) return spending;
  return {
    ...spending,
    reserved: [...spending.reserved, { step, index, panelStep, reservation: costReserved(reserved), before }],
  };
}

/** The cost of the calls of a step's attempt, with the one that ends. */
function costSoFar({ reserved }: RunSpending, step: number, call: Partial<CallUsage>): Cost {
  const ended = reserved.find((each) => each.step === step);
  return ended === undefined ? NOTHING : sumOf([ended.before, costOfCall(call, ended.reservation)]);
}

/** What a step needs to begin again, after a call that the budget does not allow: all its calls once more, and that one. */
export function neededAgain(
  spending: RunSpending,
  {
    step,
    last,
    reserved,
  }: { readonly step: number; readonly last: Partial<CallUsage>; readonly reserved: Reservation },
): Cost {
  return sumOf([costSoFar(spending, step, last), costReserved(reserved)]);
}

function withStop(spending: RunSpending, before: RunSpending, { step, reserved, ...end }: NodeFailedData): RunSpending {
  if (reserved === undefined) return spending;
  const needed = neededAgain(before, { step, last: callEndedBy(end), reserved });
  return { ...spending, stopped: [...spending.stopped, { step, needed }] };
}

function withoutStop(spending: RunSpending, step: number): RunSpending {
  if (spending.stopped.length === 0) return spending;
  return { ...spending, stopped: spending.stopped.filter((each) => each.step !== step) };
}

/** What a step's next attempt needs: its first call, or as much as one that was stopped between two calls. */
export function neededByStep({ stopped }: RunSpending, step: number, first: Reservation): Cost {
  return stopped.find((each) => each.step === step)?.needed ?? costReserved(first);
}

/** The spending after a step's call has ended, with its usage, or null if the call was cut off. */
export function withoutCall(spending: RunSpending, step: number, call: Partial<CallUsage> | null): RunSpending {
  const ended = spending.reserved.find((each) => each.step === step && each.index === undefined);
  return ended === undefined ? spending : settled(spending, ended, costOfCall(call, ended.reservation));
}

/** The spending after a run of a council has ended: what it has not spent of its share returns. */
function withoutChild(spending: RunSpending, { step, index, spent }: ChildEndedData): RunSpending {
  const ended = spending.reserved.find((each) => each.step === step && each.index === index);
  if (ended === undefined) return spending;
  return settled(spending, ended, spent === undefined ? ended.reservation : costReserved(spent));
}

function settled(spending: RunSpending, ended: CallInFlight, cost: Cost): RunSpending {
  const reserved = spending.reserved.filter((each) => each !== ended);
  return { ...spending, reserved, spent: sumOf([spending.spent, cost]) };
}

/** An equal share of what is left of each limit of a budget, for each of so many runs that a council has not started yet. */
export function shareOf({ budget, spent, reserved }: RunSpending, runs: number): Reservation {
  const used = sumOf([spent, ...reserved.map(({ reservation }) => reservation)]);
  const { usd, tokens } = budget;
  const leftTokens = tokens === null ? 0 : Math.max(0, tokens - used.tokens);
  const leftUsd = usd === null || used.usd === null ? 0n : exactDollars(usd) - used.usd;
  return { tokens: Math.floor(leftTokens / runs), usd: leftUsd <= 0n ? 0 : dollarsDown(leftUsd / BigInt(runs)) };
}

/** The budget of a run that a council starts: its share of its parent's, and no more than the council's own. */
export function budgetOfChild(
  parent: RunSpending | null,
  { step, index, own }: { readonly step: number; readonly index: number; readonly own: RunBudget | undefined },
): RunBudget | undefined {
  const share = parent?.reserved.find((each) => each.step === step && each.index === index)?.reservation;
  if (parent === null || share === undefined) return own;
  const { usd, tokens, onExceeded } = parent.budget;
  const shared = {
    usd: usd === null || share.usd === null ? null : dollarsOf(share.usd),
    tokens: tokens === null ? null : share.tokens,
  };
  return { usd: least(shared.usd, own?.usd), tokens: least(shared.tokens, own?.tokens), onExceeded };
}

function least(one: number | null, other: number | null = null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** The spending when a panel closes: each discarded call counts as its reservation. */
function withoutPanel(spending: RunSpending, panelStep: number): RunSpending {
  const discarded = spending.reserved.filter((each) => each.panelStep === panelStep);
  return discarded.reduce((before, { step }) => withoutCall(before, step, null), spending);
}

/** The spending when the run ends: each call in flight counts as its reservation. */
export function withoutCalls(spending: RunSpending): RunSpending {
  return spending.reserved.reduce((before, each) => settled(before, each, each.reservation), spending);
}

function costOfCall(call: Partial<CallUsage> | null, reservation: Cost): Cost {
  const { usage, costUsd = null } = call ?? {};
  const { inputTokens = null, outputTokens = null } = usage ?? {};
  const known = (inputTokens ?? 0) + (outputTokens ?? 0);
  const isKnown = inputTokens !== null && outputTokens !== null;
  // A provider may report the cost without the tokens, or the prompt's tokens alone.
  const tokens = isKnown ? known : Math.max(known, reservation.tokens);
  return { tokens, usd: costUsd === null ? reservation.usd : exactDollars(costUsd) };
}

function sumOf(amounts: readonly Cost[]): Cost {
  return amounts.reduce((sum, { tokens, usd }) => ({
    tokens: sum.tokens + tokens,
    usd: sum.usd === null || usd === null ? null : sum.usd + usd,
  }));
}

/** The budget that a run needs for further calls: all that is spent and reserved, and their reservations. */
export function neededFor({ spent, reserved }: RunSpending, calls: readonly Cost[]): Cost {
  return sumOf([spent, ...reserved.map(({ reservation }) => reservation), ...calls]);
}

/** The limits of a budget that are below what is needed. A cost that is unknown is above every limit. */
export function exceededLimits(
  { usd, tokens }: Pick<RunBudget, 'usd' | 'tokens'>,
  needed: Cost,
): readonly ('usd' | 'tokens')[] {
  return [
    ...(usd !== null && (needed.usd === null || needed.usd > exactDollars(usd)) ? (['usd'] as const) : []),
    ...(tokens !== null && needed.tokens > tokens ? (['tokens'] as const) : []),
  ];
}

/** Output limit of a node that sets none, in tokens. A run with a budget always sends the limit that it has reserved. */
const DEFAULT_OUTPUT_TOKENS = 8_192;

/** Tokens reserved for the declaration of each tool, which a request holds beside its prompt. */
const TOKENS_PER_TOOL = 200;

/** The output limit that a run with a budget sends for a node. */
export function outputLimitOf({ maxOutputTokens = DEFAULT_OUTPUT_TOKENS }: Pick<GraphNode, 'maxOutputTokens'>): number {
  return maxOutputTokens;
}

/** The worst case of a call, with US dollars rounded up to 10^-12. */
export function reservationOf(
  node: GraphNode,
  {
    texts,
    tools,
    price,
  }: { readonly texts: readonly string[]; readonly tools: number; readonly price: ModelPrice | null },
): Reservation {
  const input = texts.reduce((sum, text) => sum + mostTokens(text), 0) + tools * TOKENS_PER_TOOL;
  const output = outputLimitOf(node);
  const usd = price === null ? null : mostCostOf({ inputTokens: input, outputTokens: output }, price);
  return reservationFor({ tokens: input + output, usd });
}

/** Scripts with spaces between words, and the characters of all scripts (Zyyy, Zinh): a token has several of their letters. */
const SPACED = [
  ...['Zyyy', 'Zinh', 'Latin', 'Greek', 'Cyrillic', 'Armenian', 'Georgian', 'Hebrew', 'Arabic', 'Ethiopic'],
  ...['Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala'],
];

/** Characters of all other scripts, of which a model may read each as a token or more, and the full-width forms. */
const UNSPACED = new RegExp(
  String.raw`(?:[\uff00-\uffef]|[^${SPACED.map((script) => `\\p{scx=${script}}`).join('')}])+`,
  'gu',
);

/** An estimate of a text's tokens: a third of the UTF-16 units, and one for each in a script without spaces. */
export function mostTokens(text: string): number {
  const { length: spaced } = text.replace(UNSPACED, '');
  return Math.ceil(spaced / 3) + text.length - spaced;
}

/** The full name of a model without a price that a run of a graph may call, or null if all have one. */
export function unpricedModel(
  graph: Graph,
  {
    fullName,
    priceOf,
  }: {
    readonly fullName: ModelNaming;
    readonly priceOf: (fullName: string) => ModelPrice | null;
  },
): string | null {
  const names = modelsAsked(graph).map((model) => fullName(model));
  return names.find((name) => priceOf(name) === null) ?? null;
}
