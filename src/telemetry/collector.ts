/** Sends traces to a collector by OTLP/HTTP. */
import type { Dispatcher } from 'undici';
import type { CollectorSettings } from '../config.js';
import { boundedText, fieldOf, jsonIn, reasonOf } from '../system/untrusted.js';
import { traceRequest } from './otlp.js';
import type { Span } from './spans.js';

/** How long a collector may take to answer, in milliseconds: the default of OpenTelemetry's exporters. */
const ANSWER_MS = 10_000;
/** Most bytes read of an answer. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Statuses after which the same request may succeed later (specification of OTLP/HTTP). */
const LATER: readonly number[] = [429, 502, 503, 504];
/** Of these, those of a gateway before a collector that may have taken the request. */
const GATEWAY: readonly number[] = [502, 504];
/** Codes of errors before a request is sent. */
const NOT_SENT: readonly unknown[] = [
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
];
/** Statuses that refuse every request, because of its address, key or format. */
const ANY_REQUEST: readonly number[] = [401, 403, 404, 405, 415];

/** What became of a trace. */
export type Sent = { readonly outcome: 'exported' } | Refused | Later;

interface Refused {
  readonly outcome: 'refused';
  readonly reason: string;
  /**
   * Whether it may accept some of several traces alone. After a partial success none may be sent again (specification of
   * OTLP/HTTP).
   */
  readonly isToSplit: boolean;
}

/** The collector is away or busy. */
export interface Later {
  readonly outcome: 'later';
  readonly reason: string;
  /** The header `Retry-After`, or null if there is none. */
  readonly retryAfter: string | null;
  /**
   * Whether it may have taken the request, or cannot answer one of this size in time. The same request could fail for ever and
   * add its spans each time, so several traces are sent alone.
   */
  readonly isToSplit: boolean;
}

export type Send = (spans: readonly Span[], signal: AbortSignal) => Promise<Sent>;

/** A function that sends spans in one request. It never throws, and follows no redirect. */
export function collector({ endpoint, headers }: CollectorSettings): Send {
  return async (spans, signal) => {
    try {
      // It takes half the processor time of fetch. Without a collector it is not loaded.
      const { request } = await import('undici');
      const answer = await request(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: traceRequest(spans),
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
      });
      // Once the collector has accepted the spans, an unreadable body must not send them again.
      return sentBy(answer, await boundedText(answer, MAX_ANSWER_BYTES).catch(() => ''));
    } catch (error) {
      const isToSplit = !NOT_SENT.includes(fieldOf(error, 'code'));
      return { outcome: 'later', reason: reasonIn(error), retryAfter: null, isToSplit };
    }
  };
}

function sentBy({ statusCode: status, headers }: Dispatcher.ResponseData, body: string): Sent {
  if (status < 200 || status >= 300) {
    const reason = `it answered ${status}`;
    if (!LATER.includes(status))
      return { outcome: 'refused', reason, isToSplit: status >= 400 && !ANY_REQUEST.includes(status) };
    const { 'retry-after': retryAfter } = headers;
    const isToSplit = GATEWAY.includes(status);
    return { outcome: 'later', reason, retryAfter: typeof retryAfter === 'string' ? retryAfter : null, isToSplit };
  }
  const rejected = fieldOf(fieldOf(jsonIn(body), 'partialSuccess'), 'rejectedSpans');
  const count = typeof rejected === 'string' || typeof rejected === 'number' ? Number(rejected) : 0;
  return count === 0
    ? { outcome: 'exported' }
    : { outcome: 'refused', reason: `it rejected ${count} spans`, isToSplit: false };
}

/** The message of an error, or its code: the error of a host with two addresses has no message. */
function reasonIn(error: unknown): string {
  return reasonOf(error) || String(fieldOf(error, 'code'));
}
