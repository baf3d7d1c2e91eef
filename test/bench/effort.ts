/** How much the benchmark does: the real thing, in about seven minutes, or a quick look whether it works at all. */
import type { Effort } from './figure.js';

export const FULL_EFFORT: Effort = {
  rounds: 3,
  warmUpSeconds: 1,
  concurrencies: [1, 50, 500],
  engineSeconds: 4,
  rawSeconds: 1.5,
  restSeconds: 6,
  socketSeconds: 10,
  diskRuns: 2_000,
  memoryRuns: 10_000,
  pausedRuns: 10_000,
  historyRuns: [1_000, 10_000, 100_000],
  listedRuns: 1_000_000,
  auditEvents: [1_000, 1_000_000],
  handoverRuns: 1_000,
  requests: 500,
  graphSeconds: 3,
  starts: 7,
  pdfPages: 100,
  passages: [1_000, 10_000, 100_000],
  fillSeconds: 35,
};

/** Its figures mean nothing: too short, and nothing is repeated. */
export const QUICK_EFFORT: Effort = {
  rounds: 1,
  warmUpSeconds: 0.1,
  concurrencies: [1, 50, 500],
  engineSeconds: 0.4,
  rawSeconds: 0.2,
  restSeconds: 0.5,
  socketSeconds: 1,
  diskRuns: 50,
  memoryRuns: 100,
  pausedRuns: 50,
  historyRuns: [10, 100],
  listedRuns: 2_000,
  auditEvents: [2_000, 4_000],
  handoverRuns: 20,
  requests: 20,
  graphSeconds: 0.3,
  starts: 2,
  pdfPages: 10,
  passages: [100, 1_000],
  fillSeconds: 5,
};
