/**
 * Votes cast again under a new Idempotency-Key. Nothing is appended for them, so the key is known only here, and its
 * answer is repeated as long as it is remembered.
 */
import { BoundedMap } from '../../system/bounded-map.js';
import type { KeyedDecision } from '../state.js';

/** Most votes remembered; beyond that the oldest is forgotten, and refused if repeated once its pause is decided. */
const MAX_REMEMBERED = 1_000;

export interface RepeatedVotes {
  /** The run's remembered votes, in the form of recorded ones. */
  of(runId: string, keyHash: string | null): readonly KeyedDecision[];
  remember(runId: string, vote: KeyedDecision): void;
}

export function repeatedVotes(max = MAX_REMEMBERED): RepeatedVotes {
  const votes = new BoundedMap<string, KeyedDecision>(max);
  const nameOf = (runId: string, keyHash: string): string => `${runId} ${keyHash}`;
  return {
    of(runId, keyHash) {
      const vote = keyHash === null ? undefined : votes.get(nameOf(runId, keyHash));
      return vote === undefined ? [] : [vote];
    },
    remember(runId, vote) {
      votes.set(nameOf(runId, vote.keyHash), vote);
    },
  };
}
