/** The request of OTLP/HTTP for traces, as JSON (opentelemetry-proto 1.9, `ExportTraceServiceRequest`). */
import type { Attributes, Span } from './spans.js';

/** OTLP's number of the kind of a span that is neither a client nor a server. */
const INTERNAL = 1;
const STATUS_ERROR = 2;
/** Attributes that may have a fraction. They are always of this type, because many backends accept one type for a name. */
const DOUBLES: readonly string[] = ['council.cost_usd', 'council.run.cost_usd', 'council.run.score'];

/** The body of a request to `/v1/traces`. */
export function traceRequest(spans: readonly Span[]): object {
  const resource = { attributes: keyValues({ 'service.name': 'council-run-service' }) };
  const scope = { name: 'council-run-service' };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(spanJson) }] }] };
}

function spanJson({ traceId, spanId, parentSpanId, name, startedAt, endedAt, attributes, error, link }: Span): object {
  return {
    ...{ traceId, spanId, ...(parentSpanId !== null && { parentSpanId }), name, kind: INTERNAL },
    ...{ startTimeUnixNano: nanos(startedAt), endTimeUnixNano: nanos(endedAt) },
    attributes: keyValues(attributes),
    ...(link !== null && { links: [link] }),
    status: error === null ? {} : { code: STATUS_ERROR, message: error },
  };
}

/** As text: numbers of 64 bits are texts in JSON. */
function nanos(at: string): string {
  return `${Date.parse(at)}000000`;
}

function keyValues(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: anyValue(key, value) }],
  );
}

function anyValue(key: string, value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return DOUBLES.includes(key) ? { doubleValue: value } : { intValue: String(value) };
}
