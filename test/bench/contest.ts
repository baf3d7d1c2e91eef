/** Several ways to run the same council, in turns, so that other load of the machine meets all of them. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/temp-dir.js';
import type { TurnOrder, TurnReport } from './contestant.js';
import type { Effort, Figure } from './figure.js';
import { CONCURRENCIES, figure } from './figure.js';
import { elementAt } from '../../src/system/element.js';

const PROCESS = fileURLToPath(new URL('contestant-process.js', import.meta.url));
/** The flags of `npm start`, for each entry. */
const FLAGS = ['--max-semi-space-size=16'];
/** Concurrent runs while V8 compiles the code. */
const WARM_UP_AT = 50;
/** Master and critic three times, then the writer. */
const NODE_EXECUTIONS = 7;

export interface Entry {
  readonly name: string;
  /** Exports `openContestant` (contestant.ts). */
  readonly module: URL;
}

/** One round of an entry. */
interface Turn {
  readonly runsPerSecond: number;
  readonly processorMsPerRun: number;
}

/** An entry's rounds at a number of concurrent runs. */
export interface Result {
  readonly name: string;
  readonly atOnce: number;
  readonly turns: readonly Turn[];
}

/** @throws {Error} an entry cannot start, ends early, or does not execute all nodes of its runs */
export async function contest(
  entries: readonly Entry[],
  { contestRounds, contestSeconds }: Effort,
): Promise<readonly Result[]> {
  const processes = await Promise.all(entries.map(started));
  try {
    const results: Result[] = [];
    for (const { turn } of processes) await turn({ atOnce: WARM_UP_AT, seconds: contestSeconds });
    for (const atOnce of CONCURRENCIES) {
      const measured = processes.map(({ name, turn }) => ({ name, atOnce, turn, turns: [] as Turn[] }));
      for (const { turn } of measured) await turn({ atOnce, seconds: contestSeconds });
      for (let round = 0; round < contestRounds; round += 1) {
        // The order alternates.
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

/** The rates of the first entry divided by those of each other entry, round by round; then the rates of all. */
export function figuresOf(results: readonly Result[]): readonly Figure[] {
  const first = elementAt(results, 0).name;
  const ours = results.filter(({ name }) => name === first);
  const ratios = ours.flatMap((our) =>
    results
      .filter(({ name, atOnce }) => name !== first && atOnce === our.atOnce)
      .flatMap((other) => ratiosOf(our, other)),
  );
  return [...ratios, ...results.flatMap(ratesOf)];
}

function ratiosOf(our: Result, other: Result): readonly Figure[] {
  const rounds = our.turns.map((turn, round) => ({ turn, than: elementAt(other.turns, round) }));
  const rates = rounds.map(({ turn, than }) => turn.runsPerSecond / than.runsPerSecond);
  const costs = rounds.map(({ turn, than }) => than.processorMsPerRun / turn.processorMsPerRun);
  const prefix = `${our.name} to ${other.name}, ${our.atOnce} concurrent:`;
  return [figure(`${prefix} runs/s`, 'x', rates), figure(`${prefix} runs per second of processor time`, 'x', costs)];
}

function ratesOf({ name, atOnce, turns }: Result): readonly Figure[] {
  const rates = turns.map(({ runsPerSecond }) => runsPerSecond);
  const costs = turns.map(({ processorMsPerRun }) => processorMsPerRun);
  const prefix = `${name}, ${atOnce} concurrent:`;
  return [figure(`${prefix} runs`, '/s', rates), figure(`${prefix} processor time per run`, 'ms', costs)];
}
