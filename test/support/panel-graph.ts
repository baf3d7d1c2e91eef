/** A panel of four whose members ask models of their own, with a rank and a judge. */
import { withOutput } from '../../src/graph/output-node.js';
import { graphWith } from './given.js';

const NODE = { timeoutMs: 600_000, maxAttempts: 4 };
const MEMBERS = [1, 2, 3, 4].map((number) => ({ id: `m${number}`, label: `M${number}`, model: `mind-${number}` }));

/** A material of 500 kB, for the runs of a process whose arguments cannot hold it. */
export const LONG_MATERIAL = 'The tenant pays the rent. '.repeat(20_000);

/** The quorum answers before the last member, whose time does not end within a test. */
export const FOUR_MINDS = graphWith(
  [
    { ...NODE, id: 'ask', role: 'panel', members: MEMBERS, quorum: 3, graceMs: 600_000 },
    { ...NODE, id: 'rank', role: 'rank', countsIteration: false },
    { ...NODE, id: 'judge', role: 'judge', countsIteration: false },
  ],
  [
    { id: 'e1', source: 'ask', target: 'rank', condition: null },
    { id: 'e2', source: 'rank', target: 'judge', condition: null },
  ],
);

/** The same with an output of any object. */
export const FOUR_MINDS_WITH_OUTPUT = withOutput(FOUR_MINDS, { type: 'object' });
