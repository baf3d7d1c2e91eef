/** The engine beside the same council written by hand, in turns. */
import { contest, figuresOf } from './contest.js';
import type { Part } from './figure.js';

/** What remains for hash chains, read models, recovery, limits and the right graph for everyone (issue 18). */
const TARGETS = new Map([
  [1, { atLeast: 60 }],
  [50, { atLeast: 80 }],
  [500, { atLeast: 60 }],
]);

/** As in the contest with others (against-peers.ts). */
export const ENGINE = { name: 'engine', module: new URL('engine-contestant.js', import.meta.url) };
const HAND_WRITTEN = { name: 'hand-written loop', module: new URL('hand-written.js', import.meta.url) };

export const yardstickPart: Part = {
  name: 'yardstick',
  method: ({ contestRounds, contestSeconds }) =>
    `The engine and a loop written by hand for this council alone (hand-written.ts: an actor a run, one durable append a ` +
    `step, batched; no hashes, no read models), each in a process of its own, in ${contestRounds} rounds of turns of ` +
    `${contestSeconds} s of processor time, of all threads, after one that does not count. Ratios are those of a round.`,
  measure: async (effort) => figuresOf(await contest([ENGINE, HAND_WRITTEN], effort), { unit: '%', targets: TARGETS }),
};
