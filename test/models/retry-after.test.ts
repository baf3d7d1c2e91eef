import { expect } from 'chai';
import { requestedWaitMs } from '../../src/models/retry-after.js';

const NOW = '2026-01-02T03:04:05.000Z';
const RETRY_INFO = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.074824224s' };
const withDetails = (...details: readonly object[]) => ({ error: { details } });
const inBody = (headers: object) => ({ error: { code: 429, metadata: { headers } } });

const ROWS: readonly (readonly [headers: Readonly<Record<string, string>>, body: unknown, waitMs: number | null])[] = [
  [{}, null, null],
  [{ 'retry-after': '7' }, null, 7_000],
  [{ 'retry-after': '0' }, null, 0],
  [{ 'retry-after': '0.5' }, null, 500],
  [{ 'retry-after': 'Fri, 02 Jan 2026 03:05:05 GMT' }, null, 60_000],
  [{ 'retry-after': 'Friday, 02-Jan-26 03:05:05 GMT' }, null, 60_000],
  [{ 'retry-after': 'Fri, 02 Jan 2026 03:03:05 GMT' }, null, 0],
  [{ 'retry-after': 'soon' }, null, null],
  [{ 'retry-after': '-5' }, null, null],
  [{ 'retry-after': '9'.repeat(400) }, null, null],
  [{ 'retry-after-ms': '1500' }, null, 1_500],
  [{}, withDetails({}, RETRY_INFO), 34_075],
  [{}, [withDetails(RETRY_INFO)], 34_075],
  [{}, withDetails({ ...RETRY_INFO, retryDelay: 'soon' }), null],
  [{}, withDetails({ '@type': 'x', retryDelay: '3s' }), null],
  [{ 'retry-after': '7' }, withDetails(RETRY_INFO), 34_075],
  [{ 'retry-after': '70' }, withDetails(RETRY_INFO), 70_000],
  // A limit of which nothing remains counts before others, and of those the earliest.
  [
    {
      'x-ratelimit-reset-requests': '1m30s',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-tokens': '6ms',
    },
    null,
    90_000,
  ],
  [{ 'x-ratelimit-reset-tokens': '250ms', 'x-ratelimit-reset-requests': '2s' }, null, 250],
  [{ 'x-ratelimit-reset': String(Date.parse(NOW) + 7_000), 'x-ratelimit-remaining': '0' }, null, 7_000],
  [{ 'x-ratelimit-reset': String(Date.parse(NOW) / 1000 + 3) }, null, 3_000],
  [
    { 'anthropic-ratelimit-requests-reset': '2026-01-02T03:04:09Z', 'anthropic-ratelimit-requests-remaining': '0' },
    null,
    4_000,
  ],
  [{ 'x-ratelimit-reset-tokens': 'soon' }, null, null],
  [{}, inBody({ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': Date.parse(NOW) + 3_500 }), 3_500],
];

describe('The wait that a refusal asks for', () => {
  for (const [headers, body, waitMs] of ROWS) {
    it(`is ${waitMs === null ? 'none' : `${waitMs} ms`} by ${JSON.stringify([headers, body]).slice(0, 120)}`, () => {
      expect(requestedWaitMs(headers, body, NOW)).to.equal(waitMs);
    });
  }
});
