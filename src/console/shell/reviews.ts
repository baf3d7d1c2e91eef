/** Which draft the user has had before them at each pause, and since when: sent with their decision. */
import type { ReviewSent } from '../../generated/schemas.js';
import { sha256 } from '../record/chain.js';
import { serviceTime } from '../ui/time.js';

/** Most pauses known; the oldest are forgotten. */
const MAX_PAUSES = 1_000;
/** Browsers have no digests on pages of other machines without TLS. */
const subtle = 'subtle' in window.crypto ? window.crypto.subtle : null;

const reviews = new Map<string, ReviewSent>();

/** The draft of a pause is on the screen. Later calls for the same pause change nothing. */
export async function onDraftSeen(pauseKey: string, draft: string | null): Promise<void> {
  const opened_at = new Date(serviceTime()).toISOString();
  if (subtle === null || reviews.has(pauseKey)) return;
  const draft_sha256 = draft === null ? null : await sha256(subtle, draft);
  if (reviews.has(pauseKey)) return;
  reviews.set(pauseKey, { draft_sha256, opened_at });
  const [oldest] = reviews.keys();
  if (reviews.size > MAX_PAUSES && oldest !== undefined) reviews.delete(oldest);
}

/** What the user has had before them at a pause, or undefined if its draft was never on the screen. */
export function reviewOf(pauseKey: string): ReviewSent | undefined {
  return reviews.get(pauseKey);
}
