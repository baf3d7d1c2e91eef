/** What can be said of a record: that it bears out, that it does not, or that nothing certain can be said. */
import type { Difference, Verified } from '../../audit/verify.js';
import { verifyRecord } from '../../audit/verify.js';
import type { ExportedEvent } from '../../log/chain.js';
import { isFinished } from '../../run/state.js';
import type { ReplayMeans } from '../../run/replay.js';

export interface Finding {
  /** Null: it bears out as far as it goes, and nothing tells whether more belongs to it. */
  readonly isValid: boolean | null;
  readonly runId: string;
  /** Events that bear out, from the first. */
  readonly events: number;
  /** Hash of the last of them; 64 zeros when there is none. */
  readonly headHash: string;
  readonly firstDifference: Difference | null;
}

export interface Examined extends Pick<Verified, 'events' | 'headHash' | 'firstDifference'> {
  readonly runId: string;
  /** Whether nothing can follow the last event, or its place is vouched for. */
  readonly isWhole: boolean;
  /** Revision of the event with the hash that is asked for; null when there is none. */
  readonly headSeq: number | null;
}

/** Replays events; tells where one has a hash. */
export async function examined(
  runId: string,
  events: AsyncIterable<ExportedEvent>,
  { head, ...means }: ReplayMeans & { readonly head: string | null },
): Promise<Examined> {
  let headSeq: number | null = null;
  const onTaken = ({ seq, hash }: { readonly seq: number; readonly hash: string }): void => {
    if (hash === head) headSeq = seq;
  };
  const { events: count, headHash, firstDifference, run } = await verifyRecord(runId, events, { ...means, onTaken });
  return { runId, events: count, headHash, firstDifference, isWhole: run !== null && isFinished(run), headSeq };
}

/** @param head hash that the last event should have; null: whatever it has */
export function findingOf(
  { runId, events, headHash, firstDifference, isWhole, headSeq }: Examined,
  head: string | null,
): Finding {
  const difference = firstDifference ?? (head === null || head === headHash ? null : headDifference(events, headSeq));
  const isValid = difference === null && (isWhole || head !== null) ? true : difference === null ? null : false;
  return { isValid, runId, events, headHash, firstDifference: difference };
}

function headDifference(events: number, headSeq: number | null): Difference {
  if (headSeq !== null) return { seq: headSeq + 1, what: 'it follows the event with the hash that should be the last' };
  return { seq: events, what: 'the record ends before it, and no event has the hash that should be the last' };
}
