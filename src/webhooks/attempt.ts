/** One attempt at a delivery. */
import { retryWhileUnavailable } from '../eventlog/port.js';
import { RunErased, isUnreadable } from '../run/errors.js';
import { inTime, retryAfterMs } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import type { Delivery } from './deliveries.js';
import type { Messages } from './message.js';
import type { Post, PostAnswer } from './post.js';
import type { HmacSha256 } from './signature.js';
import { signedHeaders } from './signature.js';
import type { Webhook } from './state.js';
import { signingSecrets } from './state.js';

/** How long a receiver may take, in milliseconds. */
const ANSWER_MS = 15_000;
/** With this status a receiver asks for no further deliveries (Standard Webhooks). */
const GONE = 410;
/** Longest recorded reason, in characters. */
const MAX_REASON_CHARS = 300;

export interface AttemptDeps {
  readonly post: Post;
  readonly messages: Pick<Messages, 'bodyOf'>;
  readonly hmac: HmacSha256;
  /** Whether a webhook may have an address. */
  readonly accepts: (address: string) => boolean;
  readonly system: Pick<System, 'now' | 'after' | 'random'>;
}

/** Whether the receiver asks for no further deliveries. */
export function isGone({ responseStatus }: Delivery): boolean {
  return responseStatus === GONE;
}

/**
 * Sends the delivery once. Resolves with the delivery after this attempt.
 *
 * @param signal abandons the attempt: it rejects, and whether the receiver got it is unknown
 */
export async function attempt(
  webhook: Webhook,
  delivery: Delivery,
  { deps, signal }: { readonly deps: AttemptDeps; readonly signal: AbortSignal },
): Promise<Delivery> {
  const { messages, system } = deps;
  try {
    const body = await retryWhileUnavailable(() => messages.bodyOf(delivery), { system, signal });
    const answer = await answerTo(webhook, { delivery, body }, { deps, signal });
    return after(delivery, answer, system);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    const reason = error instanceof RunErased ? ERASED : 'The record of the run is damaged';
    return ended(delivery, { status: 'failed', error: reason });
  }
}

/** The error of a delivery whose run was erased before, which is no fault. */
export const ERASED = 'The run was erased';

type Answered = PostAnswer | { readonly reason: string };

async function answerTo(
  webhook: Webhook,
  { delivery, body }: { readonly delivery: Delivery; readonly body: string },
  { deps, signal }: { readonly deps: AttemptDeps; readonly signal: AbortSignal },
): Promise<Answered> {
  const { system, accepts, post, hmac } = deps;
  const at = system.now();
  const signed = signedHeaders({ id: delivery.id, at, body, secrets: signingSecrets(webhook, at) }, hmac);
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'User-Agent': 'council-run-service',
    ...signed,
  };
  const sending = { url: new URL(webhook.url), headers, body, accepts };
  const late = (): Error => new Error(`no answer within ${ANSWER_MS / 1000} s`);
  try {
    return await inTime((call) => post({ ...sending, signal: call.signal }), {
      system,
      maxMs: ANSWER_MS,
      signal,
      late,
    });
  } catch (error) {
    signal.throwIfAborted();
    return { reason: reasonIn(error) };
  }
}

/** The reason of an error. If a host has several addresses, an AggregateError without a message holds an error for each. */
function reasonIn(error: unknown): string {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const text = first instanceof Error ? first.message : String(first);
  // Cutting may leave half a character, which cannot be recorded.
  return text.trim().slice(0, MAX_REASON_CHARS).toWellFormed();
}

function after(before: Delivery, answer: Answered, system: AttemptDeps['system']): Delivery {
  const now = system.now();
  const attempts = before.attempts + 1;
  const firstAttemptAt = before.firstAttemptAt ?? now;
  const responseStatus = 'status' in answer ? answer.status : null;
  const delivery = { ...before, attempts, firstAttemptAt, lastAttemptAt: now, responseStatus };
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300)
    return ended(delivery, { status: 'delivered', error: null });
  const error = 'reason' in answer ? answer.reason : `it answered ${answer.status}`;
  const retryAfter = 'status' in answer ? answer.retryAfter : null;
  const nowMs = Date.parse(now);
  const askedMs = retryAfter === null ? null : retryAfterMs(retryAfter, nowMs);
  const failed = { attempts, firstMs: Date.parse(firstAttemptAt), nowMs, retryAfterMs: askedMs };
  const nextMs = isGone(delivery) ? null : nextAttemptMs(failed, system.random);
  if (nextMs === null) return ended(delivery, { status: 'failed', error });
  return { ...delivery, error, nextAttemptAt: new Date(nextMs).toISOString() };
}

function ended(delivery: Delivery, how: Pick<Delivery, 'status' | 'error'>): Delivery {
  return { ...delivery, ...how, nextAttemptAt: null };
}

/** Waits after the first attempts, in milliseconds; after them, an hour each. */
const WAITS_MS = [5_000, 30_000, 120_000, 600_000, 3_600_000];
const HOUR_MS = 3_600_000;
/** How long a delivery is attempted, from its first attempt, in milliseconds. */
const GIVE_UP_MS = 3 * 24 * HOUR_MS;
/**
 * Shortest waits that a receiver can ask for, in milliseconds: after the first attempt, doubled after each, and the longest.
 * If they did not grow, a receiver that always asks for the next attempt at once would fill the log: 100 deliveries that wait
 * for it would add 80 events a second.
 */
const SHORTEST_MS = { first: 1_000, longest: 60_000 };
/** Longest random addition to a wait, as a share of it, so that many deliveries do not come at once. */
const JITTER = 0.2;

export interface FailedAttempt {
  /** Attempts so far, at least 1. */
  readonly attempts: number;
  /** Times in ms since 1970. */
  readonly firstMs: number;
  readonly nowMs: number;
  /** How long the receiver asks to wait, in milliseconds, or null if it does not say. */
  readonly retryAfterMs: number | null;
}

/** Time of the next attempt, in ms since 1970, or null if there is none. The last one is 3 days after the first. */
export function nextAttemptMs(
  { attempts, firstMs, nowMs, retryAfterMs }: FailedAttempt,
  random: () => number,
): number | null {
  const endMs = firstMs + GIVE_UP_MS;
  if (nowMs >= endMs) return null;
  const shortestMs = Math.min(SHORTEST_MS.longest, SHORTEST_MS.first * 2 ** (attempts - 1));
  const waitMs = retryAfterMs === null ? (WAITS_MS[attempts - 1] ?? HOUR_MS) : Math.max(shortestMs, retryAfterMs);
  return Math.min(endMs, Math.ceil(nowMs + waitMs * (1 + JITTER * random())));
}
