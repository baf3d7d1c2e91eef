import { limitsOf } from '../../src/api/access/limits.js';

/** Limits that allow everything, for tests of an edge without the service. */
export const NO_LIMITS = limitsOf({ requests: null, runs: null, unfinishedRuns: null }, { monotonicMs: () => 0 });
