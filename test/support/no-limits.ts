import { limitsOf } from '../../src/api/access/limits.js';

/** For an edge that is tested without the service behind it. */
export const NO_LIMITS = limitsOf({ requests: null, runs: null, unfinishedRuns: null }, { monotonicMs: () => 0 });
