/** Sends traces to a collector by OTLP/HTTP. */
import type { CollectorSettings } from '../config.js';
import { fieldOf } from '../system/untrusted.js';
import { traceRequest } from './otlp.js';
import type { Span } from './spans.js';

/** How long a collector may take to answer, in milliseconds: the default of OpenTelemetry's exporters. */
const ANSWER_MS = 10_000;
/** Statuses after which the same request may succeed (specification of OTLP/HTTP). */
const LATER: readonly number[] = [429, 502, 503, 504];

/** What became of a trace. */
export type Sent = { readonly outcome: 'exported' } | Refused | Later;

interface Refused {
  readonly outcome: 'refused';
  readonly reason: string;
}

/** The collector is away or busy. */
export interface Later {
  readonly outcome: 'later';
  readonly reason: string;
  /** How long it asks to wait, in milliseconds, or null if it does not say. */
  readonly retryAfterMs: number | null;
}

export type Send = (spans: readonly Span[], signal: AbortSignal) => Promise<Sent>;

/** A function that sends one trace. It never throws. */
export function collector({ endpoint, headers }: CollectorSettings, fetch: typeof globalThis.fetch): Send {
  return async (spans, signal) => {
    try {
      const reply = await fetch(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: traceRequest(spans),
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
      });
      return sentBy(reply, await reply.text());
    } catch (error) {
      return { outcome: 'later', reason: reasonIn(error), retryAfterMs: null };
    }
  };
}

function sentBy({ ok, status, headers }: Response, body: string): Sent {
  if (!ok) {
    const seconds = Number(headers.get('Retry-After') ?? Number.NaN);
    const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : null;
    const reason = `it answered ${status}`;
    return LATER.includes(status) ? { outcome: 'later', reason, retryAfterMs } : { outcome: 'refused', reason };
  }
  const rejected = fieldOf(fieldOf(parsed(body), 'partialSuccess'), 'rejectedSpans');
  const count = typeof rejected === 'string' || typeof rejected === 'number' ? Number(rejected) : 0;
  return count === 0 ? { outcome: 'exported' } : { outcome: 'refused', reason: `it rejected ${count} spans` };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // A collector may answer in another form.
    return null;
  }
}

/** fetch hides the reason in its cause. */
function reasonIn(error: unknown): string {
  const { cause } = error instanceof Error ? error : {};
  return cause instanceof Error ? cause.message : error instanceof Error ? error.message : String(error);
}
