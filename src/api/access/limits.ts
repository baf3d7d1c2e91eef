/**
 * Limits per key, or per address without a key: requests, started runs, sign-ins, and unfinished runs on this instance.
 * Answers report them in the fields of draft-ietf-httpapi-ratelimit-headers-10.
 */
import { isLoopbackAddress, networkOf } from '../../system/addresses.js';
import type { Caller } from '../../keys/caller.js';
import type { AddressList } from '../../system/addresses.js';
import type { RoutedRequest } from './request-source.js';
import { clientAddress } from './request-source.js';
import type { System } from '../../system/system.js';
import { RequestRefused } from '../problems.js';

/** Each is null if there is no limit. */
export interface LimitSettings {
  readonly requests: (Rate & Quota) | null;
  readonly runs: (Rate & Quota) | null;
  readonly unfinishedRuns: Quota | null;
}

interface Quota {
  readonly quota: number;
  /** Whether the operator set it: then it applies to loopback addresses too. */
  readonly isSet: boolean;
}

/** The client whose limits apply to a request: its key, or without a key its address. */
export interface Client {
  readonly actor: string | null;
  readonly address: string;
}

export function clientOf(
  request: RoutedRequest,
  { actor }: Pick<Caller, 'actor'>,
  { trustedProxies }: { readonly trustedProxies: AddressList },
): Client {
  return { actor, address: clientAddress(request, trustedProxies) };
}

/** The result of checking a request against the limits. */
export interface LimitCheck {
  /** Header fields of every answer, refusals included; empty if no limit applies. */
  readonly fields: Readonly<Record<string, string>>;
  /** The 429, or null if the request passes. */
  readonly refusal: RequestRefused | null;
}

export interface RunLimitCheck extends LimitCheck {
  /** Stops counting the run if it did not start. Has no effect on a run that was counted before. */
  readonly uncount: () => void;
}

export interface Limits {
  /** Counts a request. */
  request(client: Client): LimitCheck;
  /** Counts a run from its start to its end. A repeated start of a counted run always passes. */
  run(client: Client, runId: string): RunLimitCheck;
  ended(runId: string): void;
  /** Counts a sign-in. */
  signIn(client: Client): LimitCheck;
}

/**
 * Sign-ins of a client: each adds a session, which the log keeps. A browser needs one in 12 hours. Counts loopback too.
 */
const SIGN_IN_RATE = { quota: 60, windowSeconds: 3_600, isSet: true };

/** Largest number of counted runs, of about 200 bytes each. Beyond it the service stops counting the oldest. */
const MAX_COUNTED_RUNS = 100_000;
/** Seconds until the client may try again: a fixed guess, because the end of the next run is unknown. */
const UNFINISHED_RETRY_SECONDS = 5;

export function limitsOf(
  { requests, runs, unfinishedRuns }: LimitSettings,
  system: Pick<System, 'monotonicMs'>,
): Limits {
  const requestLimit = rateLimit(REQUESTS, requests, system);
  const runLimit = rateLimit(RUNS, runs, system);
  const signInLimit = rateLimit(SIGN_INS, SIGN_IN_RATE, system);
  const counted = countedRuns();
  const unfinishedLimit = limitOf(UNFINISHED, unfinishedRuns, (subject, quota) => {
    const left = quota - counted.of(subject) - 1;
    return { isGranted: left >= 0, left: Math.max(0, left), nextSeconds: UNFINISHED_RETRY_SECONDS };
  });
  return {
    request: (client) => checkOf(requestLimit(client)),
    run(client, runId) {
      const uncount = (): void => undefined;
      if (counted.has(runId)) return { ...PASSED, uncount };
      const room = unfinishedLimit(client);
      const isFull = room.some(({ state }) => !state.isGranted);
      const check = checkOf(isFull ? room : [...runLimit(client), ...room]);
      if (check.refusal !== null) return { ...check, uncount };
      counted.add(runId, subjectOf(client));
      return { ...check, uncount: () => counted.remove(runId) };
    },
    ended: (runId) => counted.remove(runId),
    signIn: (client) => checkOf(signInLimit(client)),
  };
}

/** Counts a request against one limit; an empty list if the limit does not apply to the client. */
type Limit = (client: Client) => readonly PolicyState[];

function limitOf(
  about: About,
  settings: (Quota & Partial<Rate>) | null,
  count: (subject: string, quota: number) => QuotaState,
): Limit {
  if (settings === null) return () => [];
  const { quota, isSet } = settings;
  const policy = policyOf(about, settings);
  return (client) => {
    // Without keys, loopback addresses have no limit unless the operator set one.
    if (client.actor === null && !isSet && isLoopbackAddress(client.address)) return [];
    return [{ policy, state: count(subjectOf(client), quota) }];
  };
}

function rateLimit(about: About, rate: (Rate & Quota) | null, system: Pick<System, 'monotonicMs'>): Limit {
  if (rate === null) return () => [];
  const buckets = tokenBuckets(rate, system);
  return limitOf(about, rate, (subject) => buckets.take(subject));
}

function subjectOf({ actor, address }: Client): string {
  return actor === null ? `address ${networkOf(address)}` : `key ${actor}`;
}

// Unfinished runs, by client.

interface CountedRuns {
  has(runId: string): boolean;
  of(subject: string): number;
  add(runId: string, subject: string): void;
  remove(runId: string): void;
}

function countedRuns(): CountedRuns {
  const subjects = new Map<string, string>();
  const counts = new Map<string, number>();
  const of = (subject: string): number => counts.get(subject) ?? 0;
  const remove = (runId: string): void => {
    const subject = subjects.get(runId);
    if (subject === undefined) return;
    subjects.delete(runId);
    if (of(subject) > 1) counts.set(subject, of(subject) - 1);
    else counts.delete(subject);
  };
  return {
    has: (runId) => subjects.has(runId),
    of,
    add(runId, subject) {
      subjects.set(runId, subject);
      counts.set(subject, of(subject) + 1);
      const [oldest] = subjects.size > MAX_COUNTED_RUNS ? subjects.keys() : [];
      if (oldest !== undefined) remove(oldest);
    },
    remove,
  };
}

// The header fields: an item of a structured field (RFC 9651) for each policy.

interface About {
  readonly name: string;
  /** The exceeded quota, for the message. */
  readonly many: string;
  /** Default: requests. */
  readonly unit?: string;
}

const REQUESTS: About = { name: 'requests', many: 'requests' };
const SIGN_INS: About = { name: 'sign-ins', many: 'sign-ins' };
const RUNS: About = { name: 'runs', many: 'runs started' };
const UNFINISHED: About = { name: 'unfinished-runs', many: 'runs unfinished', unit: 'concurrent-requests' };

interface Policy {
  readonly name: string;
  /** Its item of RateLimit-Policy. */
  readonly item: string;
  readonly complaint: string;
}

function policyOf({ name, many, unit }: About, { quota, windowSeconds }: Quota & Partial<Rate>): Policy {
  const [inUnits, seconds] = [unit === undefined ? '' : `;qu="${unit}"`, Math.ceil(windowSeconds ?? 0)];
  const [window, bound] = windowSeconds === undefined ? ['', 'at once'] : [`;w=${seconds}`, `in ${seconds} s`];
  const complaint = `Too many ${many}: at most ${quota} ${bound}`;
  return { name, item: `"${name}";q=${quota}${inUnits}${window}`, complaint };
}

interface PolicyState {
  readonly policy: Policy;
  readonly state: QuotaState;
}

const PASSED: LimitCheck = { fields: {}, refusal: null };

function checkOf(states: readonly PolicyState[]): LimitCheck {
  if (states.length === 0) return PASSED;
  const limits = states.map(
    ({ policy: { name }, state: { left, nextSeconds } }) => `"${name}";r=${left};t=${nextSeconds}`,
  );
  const policies = states.map(({ policy: { item } }) => item);
  const violated = states.find(({ state }) => !state.isGranted);
  return {
    fields: { 'RateLimit-Policy': policies.join(', '), RateLimit: limits.join(', ') },
    refusal: violated === undefined ? null : refusalOf(violated),
  };
}

function refusalOf({ policy: { complaint }, state: { nextSeconds } }: PolicyState): RequestRefused {
  const headers = { 'Retry-After': String(nextSeconds) };
  return new RequestRefused(`${complaint}; try again in ${nextSeconds} s`, { status: 429, headers });
}

/** A token bucket: `quota` tokens at once, refilled evenly within a window. */
export interface Rate {
  readonly quota: number;
  readonly windowSeconds: number;
}

/** A quota after a request. */
interface QuotaState {
  readonly isGranted: boolean;
  /** How many more requests are granted now. */
  readonly left: number;
  /** Whole seconds until the next one is granted. */
  readonly nextSeconds: number;
}

/**
 * Token buckets by name; a new bucket is full. Libraries read the machine's clock and keep a timer for each name
 * (rate-limiter-flexible 11, limiter 4); here time is an argument and the number of names is bounded.
 */
interface TokenBuckets {
  take(name: string): QuotaState;
}

/** The service keeps between this many and twice as many buckets, those used last; others are full again. 100 bytes each. */
const KEPT_BUCKETS = 5_000;

function tokenBuckets({ quota, windowSeconds }: Rate, system: Pick<System, 'monotonicMs'>): TokenBuckets {
  const windowMs = windowSeconds * 1_000;
  const eachMs = windowMs / quota;
  const fullAtMs = recentlySet(KEPT_BUCKETS);
  return {
    take(name) {
      const nowMs = system.monotonicMs();
      const missingMs = Math.max(0, (fullAtMs.get(name) ?? nowMs) - nowMs);
      // Rounding errors of the sum are far below one token.
      const available = Math.floor((windowMs - missingMs) / eachMs + 1e-6);
      const isGranted = available >= 1;
      const [left, missing] = isGranted ? [available - 1, missingMs + eachMs] : [0, missingMs];
      fullAtMs.set(name, nowMs + missing);
      const nextMs = missing - (windowMs - (left + 1) * eachMs);
      return { isGranted, left, nextSeconds: Math.max(1, Math.ceil(nextMs / 1_000)) };
    },
  };
}

/** Numbers by name, of which those set last are kept. Two generations, because a Map finds its oldest entry slowly. */
function recentlySet(kept: number): Pick<Map<string, number>, 'get'> & { set(name: string, value: number): void } {
  let [current, previous] = [new Map<string, number>(), new Map<string, number>()];
  return {
    get: (name) => current.get(name) ?? previous.get(name),
    set(name, value) {
      current.set(name, value);
      if (current.size < kept) return;
      previous = current;
      current = new Map();
    },
  };
}
