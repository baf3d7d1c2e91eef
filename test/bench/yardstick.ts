/** The engine beside the same council written by hand, in turns. */
import { contest, figuresOf } from './contest.js';
import type { Figure, Part } from './figure.js';

/** What remains for hash chains, read models, recovery, limits and the right graph for everyone (issue 18). */
const TARGETS = new Map([
  [1, { atLeast: 60 }],
  [50, { atLeast: 80 }],
  [500, { atLeast: 60 }],
]);

/** As in the contest with others (against-peers.ts). */
export const ENGINE = { name: 'engine', module: new URL('engine-contestant.js', import.meta.url) };
const RECORDED = { name: 'recorded loop', module: new URL('recorded-loop.js', import.meta.url) };
const HAND_WRITTEN = { name: 'hand-written loop', module: new URL('hand-written.js', import.meta.url) };

export const yardstickPart: Part = {
  name: 'yardstick',
  method: ({ contestRounds, contestSeconds }) =>
    `The engine and a loop written by hand for this council alone (hand-written.ts: an actor a run, one durable append a ` +
    `step, batched; no hashes, no read models), each in a process of its own, in ${contestRounds} rounds of turns of ` +
    `${contestSeconds} s of processor time, of all threads, after one that does not count. Ratios are those of a round. ` +
    `The recorded loop (recorded-loop.ts) only writes the events of such a run again, sealed into their chain: what is ` +
    `between it and the hand-written one is the price of the record, and not of the engine.`,
  async measure(effort) {
    const results = await contest([ENGINE, HAND_WRITTEN, RECORDED], effort);
    const without = ({ name }: { readonly name: string }) => results.filter((result) => result.name !== name);
    const engine = figuresOf(without(RECORDED), { unit: '%', targets: TARGETS });
    const recorded = figuresOf(without(ENGINE).toReversed(), { unit: '%', targets: new Map() });
    const isNew = ({ name }: Figure): boolean => engine.every((figure) => figure.name !== name);
    return [...engine, ...recorded.filter(isNew)];
  },
};
