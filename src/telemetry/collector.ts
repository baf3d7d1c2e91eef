/** Sends traces to a collector by OTLP/HTTP. */
import type { Dispatcher } from 'undici';
import type { CollectorSettings } from '../config.js';
import { boundedText, fieldOf, jsonIn, reasonOf } from '../system/untrusted.js';
import type { Span, Attributes } from './spans.js';

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

/** OTLP's number of the kind of a span that is neither a client nor a server. */
const INTERNAL = 1;
const STATUS_ERROR = 2;
/** Longest text of a span, in characters. A council may have labels and names of models of 256 KiB. */
const MAX_TEXT = 256;
/** Attributes that may have a fraction. They are always of this type, because many backends accept one type for a name. */
const DOUBLES: ReadonlySet<string> = new Set(['council.cost_usd', 'council.run.cost_usd', 'council.run.score']);

/**
 * The body of a request to `/v1/traces`, as JSON text. Written span by span: to build objects of this form for JSON.stringify
 * would take 1.5 times the processor time.
 */
export function traceRequest(spans: readonly Span[]): string {
  const resource = `{"attributes":[${keyValues({ 'service.name': 'council-run-service' })}]}`;
  let texts = '';
  // Not joined, because join would copy each text once more.
  for (const span of spans) texts += `${texts === '' ? '' : ','}${spanText(span)}`;
  const scopeSpans = `{"scope":{"name":"council-run-service"},"spans":[${texts}]}`;
  return `{"resourceSpans":[{"resource":${resource},"scopeSpans":[${scopeSpans}]}]}`;
}

function spanText({ traceId, spanId, parentSpanId, name, startedAt, endedAt, attributes, error, link }: Span): string {
  const parent = parentSpanId === null ? '' : `"parentSpanId":"${parentSpanId}",`;
  const times = `"startTimeUnixNano":"${nanos(startedAt)}","endTimeUnixNano":"${nanos(endedAt)}"`;
  const links = link === null ? '' : `,"links":[${JSON.stringify(link)}]`;
  const status = error === null ? '{}' : `{"code":${STATUS_ERROR},"message":${JSON.stringify(error)}}`;
  const ids = `"traceId":"${traceId}","spanId":"${spanId}",${parent}`;
  return `{${ids}"name":${jsonText(name)},"kind":${INTERNAL},${times},"attributes":[${keyValues(...attributes)}]${links},"status":${status}}`;
}

/** As text: numbers of 64 bits are texts in JSON. */
function nanos(at: string): string {
  return `${Date.parse(at)}000000`;
}

function keyValues(...all: readonly Attributes[]): string {
  let text = '';
  for (const attributes of all) {
    for (const key of Object.keys(attributes)) {
      const value = attributes[key];
      if (value === undefined || value === null) continue;
      text += `${text === '' ? '' : ','}{"key":"${key}","value":${anyValue(key, value)}}`;
    }
  }
  return text;
}

function anyValue(key: string, value: string | number | boolean): string {
  if (typeof value === 'string') return `{"stringValue":${jsonText(value)}}`;
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  return DOUBLES.has(key) ? `{"doubleValue":${value}}` : `{"intValue":"${value}"}`;
}

/** A text as JSON, cut if it is too long. */
function jsonText(text: string): string {
  // Cutting may leave half a character.
  return JSON.stringify(text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT).toWellFormed());
}
