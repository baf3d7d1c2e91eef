/**
 * Plays histories by their seeds and counts faults and events. As a program, `node dist/test/simulation/play.js FROM
 * TO` plays the seeds in order. It shrinks and prints the first that fails, and exits with code 1. As a child process
 * it reports to its parent instead.
 */
import { pathToFileURL } from 'node:url';
import type { FaultKind } from './faults.js';
import { planOf } from './faults.js';
import { playHistory } from './history.js';
import type { Met } from './met.js';
import { MET } from './met.js';
import { shrinkPlan, planText } from './shrink.js';

/** The result of some histories. */
export interface Tally {
  histories: number;
  events: number;
  turns: number;
  virtualMs: number;
  readonly injected: Partial<Record<FaultKind, number>>;
  /** The histories with each. */
  readonly met: Partial<Record<Met, number>>;
  /** The first failure, or null if there is none. */
  failure: { readonly seed: number; readonly invariant: string; readonly text: string } | null;
}

export interface PlayOptions {
  /** Called before each history: whether to play it. */
  readonly goesOn?: () => boolean;
  readonly isShrunk?: boolean;
}

/** Plays the seeds from one to another, both included, up to the first that fails. */
export async function playSeeds(from: number, to: number, options: PlayOptions = {}): Promise<Tally> {
  const { goesOn = () => true, isShrunk = true } = options;
  const tally: Tally = { histories: 0, events: 0, turns: 0, virtualMs: 0, injected: {}, met: {}, failure: null };
  for (let seed = from; seed <= to && goesOn(); seed += 1) {
    const plan = planOf(seed);
    const { broken, met, ...outcome } = await playHistory(plan);
    add(tally, { histories: 1, ...outcome, met: Object.fromEntries([...met].map((each) => [each, 1])), failure: null });
    if (broken === null) continue;
    const least = isShrunk ? planText(await shrinkPlan(plan, broken.invariant)) : planText(plan);
    tally.failure = { seed, invariant: broken.invariant, text: `${broken.message}\n${least}` };
    return tally;
  }
  return tally;
}

/** Adds another result. */
export function add(
  tally: Tally,
  { histories, events, turns, virtualMs, injected, met, failure }: Tally | Readonly<Tally>,
): void {
  tally.histories += histories;
  tally.events += events;
  tally.turns += turns;
  tally.virtualMs += virtualMs;
  for (const [kind, count] of Object.entries(injected)) {
    if (isKind(kind)) tally.injected[kind] = (tally.injected[kind] ?? 0) + count;
  }
  for (const each of MET) tally.met[each] = (tally.met[each] ?? 0) + (met[each] ?? 0);
  tally.failure ??= failure;
}

function isKind(text: string): text is FaultKind {
  return text !== '';
}

/** The result in one line. */
export function summaryLine(
  seeds: string,
  { histories, events, injected, met, virtualMs, turns, failure }: Tally,
  realMs: number,
): string {
  const faults = Object.entries(injected).sort(([a], [b]) => a.localeCompare(b));
  const count = faults.reduce((sum, [, each]) => sum + each, 0);
  const kinds = faults.map(([kind, each]) => `${kind} ${each}`).join(', ');
  const lost = failure === null ? 'lost 0' : `seed ${failure.seed} FAILS`;
  const times = `${(virtualMs / 3_600_000).toFixed(1)} h virtual, ${(realMs / 1_000).toFixed(1)} s real`;
  const deliberations = MET.map((each) => `${each} ${met[each] ?? 0}`).join(', ');
  return `${histories} histories (seeds ${seeds}; with ${deliberations}), ${count} faults (${kinds}), ${events} events, ${turns} turns, ${lost}, ${times}`;
}

async function main(from: number, to: number): Promise<void> {
  const startedMs = performance.now();
  // The soak test starts this program in several processes, and shrinks a failure itself.
  const tally = await playSeeds(from, to, { isShrunk: process.send === undefined });
  if (process.send !== undefined) process.send({ tally });
  else process.stdout.write(`${summaryLine(`${from} to ${to}`, tally, performance.now() - startedMs)}\n`);
  if (tally.failure !== null && process.send === undefined) process.stdout.write(`${tally.failure.text}\n`);
  process.exitCode = tally.failure === null ? 0 : 1;
  if (process.connected) process.disconnect();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const from = Number(process.argv[2] ?? 1);
  await main(from, Number(process.argv[3] ?? from));
}
