/** Several ways to run the same council, in turns: what else the machine does meets all of them. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/temp-dir.js';
import type { TurnOrder, TurnReport } from './contestant.js';
import type { Effort, Figure, Target } from './figure.js';
import { figure } from './figure.js';
import { elementAt } from '../../src/system/element.js';

const PROCESS = fileURLToPath(new URL('contestant-process.js', import.meta.url));
/** Those of `npm start`, for each of them. */
const FLAGS = ['--max-semi-space-size=64'];
/** Runs at once while what all of them do is compiled. */
const WARM_UP_AT = 50;
/** Master and critic three times, then the writer. */
const NODE_EXECUTIONS = 7;

export interface Entry {
  readonly name: string;
  /** Exports `openContestant` (contestant.ts). */
  readonly module: URL;
}

/** What it took in one round. */
interface Turn {
  readonly runsPerSecond: number;
  readonly processorMsPerRun: number;
}

/** An entry's rounds at so many runs at once. */
export interface Result {
  readonly name: string;
  readonly atOnce: number;
  readonly turns: readonly Turn[];
}

/** @throws {Error} one of them cannot be started, ends too early, or executes another number of nodes than all */
export async function contest(
  entries: readonly Entry[],
  { concurrencies, contestRounds, contestSeconds }: Effort,
): Promise<readonly Result[]> {
  const processes = await Promise.all(entries.map(started));
  try {
    const results: Result[] = [];
    for (const { turn } of processes) await turn({ atOnce: WARM_UP_AT, seconds: contestSeconds });
    for (const atOnce of concurrencies) {
      const measured = processes.map(({ name, turn }) => ({ name, atOnce, turn, turns: [] as Turn[] }));
      for (const { turn } of measured) await turn({ atOnce, seconds: contestSeconds });
      for (let round = 0; round < contestRounds; round += 1) {
        // Whoever is first one time is last the next.
        for (const { turn, turns } of round % 2 === 0 ? measured : measured.toReversed())
          turns.push(await turn({ atOnce, seconds: contestSeconds }));
      }
      results.push(...measured);
    }
    return results;
  } finally {
    await Promise.all(processes.map(({ stop }) => stop()));
  }
}

async function started({ name, module }: Entry) {
  const dir = tempDir();
  const child = fork(PROCESS, [module.href, dir.path], { execArgv: FLAGS });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const answer = async (): Promise<unknown> => {
    const tooEarly = ended.then((code) => Promise.reject(new Error(`${name} ended with code ${code}`)));
    return await Promise.race([new Promise((resolve) => child.once('message', resolve)), tooEarly]);
  };
  await answer();
  return {
    name,
    async turn(order: TurnOrder): Promise<Turn> {
      const answered = answer();
      child.send(order);
      // Written by contestant-process.ts.
      const { runs, elapsedMs, processorMs, asked } = (await answered) as TurnReport;
      if (asked !== runs * NODE_EXECUTIONS) throw new Error(`${name} executed ${asked} nodes in ${runs} runs`);
      return { runsPerSecond: runs / (elapsedMs / 1_000), processorMsPerRun: processorMs / runs };
    },
    async stop(): Promise<void> {
      if (child.connected) child.disconnect();
      const code = await ended;
      dir.remove();
      if (code !== 0) throw new Error(`${name} ended with code ${code}`);
    },
  };
}

/**
 * How the first entry stands to each of the others, by the ratios of its rounds; then what each of them did.
 *
 * @param unit of the ratios: `%`, or `x` for times
 * @param targets of the ratios of runs a second, by how many are at once
 */
export function figuresOf(
  results: readonly Result[],
  { unit, targets }: { readonly unit: '%' | 'x'; readonly targets: ReadonlyMap<number, Target> },
): readonly Figure[] {
  const first = elementAt(results, 0).name;
  const ours = results.filter(({ name }) => name === first);
  const ratios = ours.flatMap((our) =>
    results
      .filter(({ name, atOnce }) => name !== first && atOnce === our.atOnce)
      .flatMap((other) => ratiosOf(our, other, { unit, target: targets.get(our.atOnce) ?? null })),
  );
  return [...ratios, ...results.flatMap(ratesOf)];
}

function ratiosOf(
  our: Result,
  other: Result,
  { unit, target }: { readonly unit: '%' | 'x'; readonly target: Target | null },
): readonly Figure[] {
  const whole = unit === '%' ? 100 : 1;
  const rounds = our.turns.map((turn, round) => ({ turn, than: elementAt(other.turns, round) }));
  const at = `${our.name} to ${other.name}, ${our.atOnce} at once:`;
  return [
    figure(
      `${at} runs/s`,
      unit,
      rounds.map(({ turn, than }) => (whole * turn.runsPerSecond) / than.runsPerSecond),
      target,
    ),
    figure(
      `${at} runs a second of processor time`,
      unit,
      rounds.map(({ turn, than }) => (whole * than.processorMsPerRun) / turn.processorMsPerRun),
    ),
  ];
}

function ratesOf({ name, atOnce, turns }: Result): readonly Figure[] {
  return [
    figure(
      `${name}, ${atOnce} at once: runs`,
      '/s',
      turns.map(({ runsPerSecond }) => runsPerSecond),
    ),
    figure(
      `${name}, ${atOnce} at once: processor time a run`,
      'ms',
      turns.map(({ processorMsPerRun }) => processorMsPerRun),
    ),
  ];
}
