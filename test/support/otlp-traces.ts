/** Checks a request of OTLP/HTTP for traces, in JSON, against the shape that the protocol prescribes. */
import { expect } from 'chai';

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly OtlpSpan[] }[];
  }[];
}

/** By the name of a field: what its value must be. Fields of no other name may exist. */
const SPAN: Readonly<Record<string, RegExp | 'number' | 'object'>> = {
  traceId: /^(?!0{32})[0-9a-f]{32}$/,
  spanId: /^(?!0{16})[0-9a-f]{16}$/,
  parentSpanId: /^[0-9a-f]{16}$/,
  name: /./,
  kind: 'number',
  startTimeUnixNano: /^\d{19}$/,
  endTimeUnixNano: /^\d{19}$/,
  attributes: 'object',
  links: 'object',
  status: 'object',
};
const VALUES: Readonly<Record<string, (value: unknown) => boolean>> = {
  stringValue: (value) => typeof value === 'string',
  intValue: (value) => typeof value === 'string' && /^-?\d+$/.test(value),
  doubleValue: (value) => typeof value === 'number',
  boolValue: (value) => typeof value === 'boolean',
};

/** The spans of a request that is as the protocol prescribes. */
export function spansIn({ resourceSpans, ...others }: OtlpRequest): readonly OtlpSpan[] {
  expect(others).to.deep.equal({});
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    checkAttributes(resource.attributes);
    expect(attributesOf(resource)['service.name']).to.equal('council-run-service');
    return scopeSpans.flatMap(({ scope, spans }) => {
      expect(scope.name).to.be.a('string');
      spans.forEach(checkSpan);
      return spans;
    });
  });
}

function checkSpan(span: OtlpSpan): void {
  for (const [field, value] of Object.entries(span)) {
    const form = SPAN[field];
    if (form instanceof RegExp) expect(value, field).to.match(form);
    else expect(value, field).to.be.an(field === 'attributes' || field === 'links' ? 'array' : (form ?? 'nothing'));
  }
  for (const field of Object.keys(SPAN))
    if (!['parentSpanId', 'links'].includes(field)) expect(span).to.have.property(field);
  expect(span.kind).to.be.within(1, 5);
  expect(span.status.code ?? 0).to.be.within(0, 2);
  expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).to.equal(true);
  checkAttributes(span.attributes);
}

function checkAttributes(attributes: readonly KeyValue[]): void {
  const keys = attributes.map(({ key }) => key);
  expect(new Set(keys).size).to.equal(keys.length);
  for (const { key, value } of attributes) {
    expect(key).to.match(/^[a-z][a-z0-9_.]*$/);
    const [[type, content] = ['', null], ...more] = Object.entries(value);
    expect(more).to.deep.equal([]);
    expect(VALUES[type]?.(content), `${key} ${JSON.stringify(value)}`).to.equal(true);
  }
}

/** The attributes as plain values; numbers of 64 bits as numbers. */
export function attributesOf({
  attributes,
}: {
  readonly attributes: readonly KeyValue[];
}): Readonly<Record<string, unknown>> {
  const plain = ({ intValue, ...others }: KeyValue['value']): unknown =>
    intValue === undefined ? Object.values(others)[0] : Number(intValue);
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}
