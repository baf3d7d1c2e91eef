/** A panel of four whose members ask models of their own, with a rank and a judge. */
import { graphWith } from './given.js';

const NODE = { timeoutMs: 600_000, maxAttempts: 4 };
const MEMBERS = [1, 2, 3, 4].map((number) => ({ id: `m${number}`, label: `M${number}`, model: `mind-${number}` }));

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
