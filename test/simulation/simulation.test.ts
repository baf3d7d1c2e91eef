import { expect } from 'chai';
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { FAULT_KINDS, planOf, WIDE } from './faults.js';
import type { Plan } from './faults.js';
import { PANEL_GRAPHS } from './graphs.js';
import { playHistory } from './history.js';
import { MET } from './met.js';
import type { Tally } from './play.js';
import { add, playSeeds, summaryLine } from './play.js';
import { shrinkPlan } from './shrink.js';
import { IS_SOAK } from '../support/soak.js';

/** Seeds of `npm test`. */
const SEEDS = { from: 1, to: 500 };
/** Limit of turns per history on average: a limit in seconds would depend on the machine. */
const MAX_TURNS = 200;
/** Other seeds that found a fault which no smaller test covers. */
const FOUND = {
  884754: 'a stop during its start',
  986598: 'a stop, a start, and another stop during that start',
};

describe('The engine in virtual time', () => {
  it('keeps every invariant and ends every run, whatever fails', async function () {
    this.timeout(0);
    const startedMs = performance.now();
    const { from, to } = IS_SOAK ? soakSeeds() : SEEDS;
    const tally = IS_SOAK ? await soaked(from, to) : await playSeeds(from, to);
    process.stdout.write(`${summaryLine(`from ${from}`, tally, performance.now() - startedMs)}\n`);
    expect(tally.failure?.text ?? null).to.equal(null);
    if (IS_SOAK) return;
    expect(Object.keys(tally.injected)).to.have.members([...FAULT_KINDS]);
    for (const each of MET) expect(tally.met[each], each).to.be.above(0);
    expect(tally.met.discarded, 'discarded').to.be.above(tally.histories / 20);
    expect(deliberating(from, to) / tally.histories, 'plans with panels').to.be.above(1 / 3);
    expect(tally.turns / tally.histories).to.be.below(MAX_TURNS);
  });

  for (const [seed, met] of Object.entries(FOUND)) {
    it(`keeps every invariant when an instance meets ${met}`, async () => {
      const { broken } = await playHistory(planOf(Number(seed)));
      expect(broken?.message ?? null).to.equal(null);
    });
  }

  it('plays a seed the same way each time, byte for byte', async () => {
    const seeds = [3, 14, 15, 20, 65, 92];
    const traces = async (order: readonly number[]): Promise<ReadonlyMap<number, string | null>> => {
      const found = new Map<number, string | null>();
      for (const seed of order) found.set(seed, (await playHistory(planOf(seed), { isTraced: true })).trace);
      return found;
    };
    const once = await traces(seeds);
    expect(new Set(once.values()).size).to.equal(seeds.length);
    const again = await traces([...seeds].reverse());
    for (const [seed, trace] of once) expect(again.get(seed)).to.equal(trace);
  });

  it('lets no instance without events from the log take a run from a working one', async () => {
    const { broken, injected } = await playHistory({
      seed: 1,
      isVerified: true,
      pace: WIDE,
      rates: [1, 1],
      isCluster: true,
      maxActiveRuns: 100,
      maxModelCalls: 8,
      modelOutageMs: 60_000,
      runs: [{ graph: 'line', godMode: false, hasTools: false, budget: 50 }],
      requests: [{ kind: 'start', atMs: 500, slot: 0, run: 0, parent: 0 }],
      faults: [
        { kind: 'model-unavailable', atMs: 0, slot: 0, forMs: 11_500 },
        { kind: 'deaf', atMs: 2_500, slot: 1, forMs: 9_000 },
      ],
    });
    expect(broken?.message ?? null).to.equal(null);
    expect(injected).to.deep.equal({ 'model-unavailable': 1, deaf: 1 });
  });

  it('finds a log that forgets acknowledged events, and shrinks the history to that fault', async () => {
    const plan = planOf(30);
    const forgets: Plan['faults'][number] = { kind: 'append-forgotten', atMs: 0, slot: 0, forMs: 0 };
    const bad = { ...plan, faults: [...plan.faults, forgets, ...planOf(31).faults] };
    const { broken } = await playHistory(bad);
    expect(broken?.invariant).to.equal('no acknowledged event lost');
    const least = await shrinkPlan(bad, 'no acknowledged event lost');
    expect(least.faults).to.deep.equal([forgets]);
    expect(least.requests).to.have.length(1);
  });
});

/** How many of these seeds have a run with panels, ranks, judges or juries. */
function deliberating(from: number, to: number): number {
  const seeds = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  return seeds.filter((seed) => planOf(seed).runs.some(({ graph }) => Object.hasOwn(PANEL_GRAPHS, graph))).length;
}

/** From the environment variable `SIMULATION_SEEDS`, by default 1-1000000. */
function soakSeeds(): { readonly from: number; readonly to: number } {
  const [from = 1, to = 1_000_000] = (process.env['SIMULATION_SEEDS'] ?? '').split('-').filter(Boolean).map(Number);
  return { from, to };
}

/** Plays seeds in one process per processor, for at most `SIMULATION_MINUTES` (60). */
async function soaked(from: number, to: number): Promise<Tally> {
  const untilMs = performance.now() + Number(process.env['SIMULATION_MINUTES'] ?? 60) * 60_000;
  const sum: Tally = { histories: 0, events: 0, turns: 0, virtualMs: 0, injected: {}, met: {}, failure: null };
  const size = 1_000;
  let next = from;
  const work = async (): Promise<void> => {
    while (next <= to && performance.now() < untilMs && sum.failure === null) {
      const first = next;
      next += size;
      add(sum, await played(first, Math.min(to, first + size - 1)));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  // The child reports the seed. Playing it again here gives the reason.
  return sum.failure === null ? sum : await playSeeds(sum.failure.seed, sum.failure.seed);
}

function played(from: number, to: number): Promise<Tally> {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL('./play.js', import.meta.url));
    const child = fork(program, [String(from), String(to)]);
    child.on('message', (message: { readonly tally?: Tally }) => message.tally !== undefined && resolve(message.tally));
    child.on('error', reject);
    // The child sends its message before it disconnects.
    child.on('disconnect', () => reject(new Error(`The simulation of seeds ${from} to ${to} has died`)));
  });
}
