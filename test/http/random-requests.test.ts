import { expect } from 'chai';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { RandomRequest, RequestDocument } from '../support/random-requests.js';
import { randomRequests } from '../support/random-requests.js';
import { documentedAt } from '../support/documented.js';
import { instantModel } from '../support/instant-model.js';
import { ALL_SCOPES, addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import type { Reply } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { pdfWith, uploaded } from '../support/upload-client.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20261122);
const REQUESTS = Number(process.env['REQUESTS'] ?? (IS_SOAK ? 1_000_000 : 800));
/** Concurrent clients. */
const CLIENTS = 8;
/** How long a client waits for the run of a chat, in milliseconds. */
const MAX_WAIT_MS = 2_000;
/** The most ids of each kind that the test remembers. */
const MAX_IDS = 50;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe(`Random requests (SEED=${SEED})`, () => {
  let service: RunningService;
  let admin: string;

  before(async () => {
    service = await startService({ model: instantModel() });
    await uploaded(service.url, pdfWith(['Trees of the north']));
    admin = await addFirstKey(service.url, ALL_SCOPES);
    const rest = restWith(service.url, admin);
    await addKey(rest, { name: 'other', scopes: ['read'] });
  });
  after(() => service.stop());

  it(`get documented answers and cause no fault, for ${REQUESTS} requests`, async () => {
    const document = (await (await send({ path: '/api/openapi.json' })).json()) as RequestDocument;
    const expectDocumented = await documentedAt(service.url, bearer(admin));
    const ids = await knownIds();
    const random = seededRandom(SEED);
    const next = randomRequests(document, { random, ids });
    const answers = new Map<number, number>();
    const heaps: number[] = [];
    let left = REQUESTS;

    async function client(): Promise<void> {
      while (left > 0) {
        left -= 1;
        // Collecting the garbage of earlier test files would take longer than this test.
        if (IS_SOAK && left % Math.ceil(REQUESTS / 10) === 0) heaps.push(heapMb());
        const request = next();
        const told = JSON.stringify({ ...request, body: request.body === null ? null : String(request.body) });
        const answer = await exchange(request);
        if (answer === null) continue;
        const { reply, isWhole } = answer;
        answers.set(reply.status, (answers.get(reply.status) ?? 0) + 1);
        if (isWhole) expectDocumented(request, reply);
        expectNoFault(request, reply, told);
        remember(ids, reply);
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client));

    expect(service.faults).to.deep.equal([]);
    expect((await send({ path: '/api/health/ready' })).status).to.equal(200);
    // Some requests must succeed, and some must be refused.
    for (const status of [200, 202, 404, 422]) expect(answers.get(status), String(status)).to.be.above(REQUESTS / 100);
    if (!IS_SOAK) return;
    const counts = JSON.stringify([...answers].sort(([a], [b]) => a - b));
    console.log(`${REQUESTS} requests, SEED=${SEED}: ${counts}; heap in MB after each tenth: ${heaps.join(' ')}`);
    // The lists of runs and keys use more memory for each entry.
    expect(heaps.at(-1)).to.be.below(50 + 2 * (heaps[1] ?? 0));
  });

  const send = ({ path, headers, ...init }: Sent): Promise<Response> =>
    fetch(service.url + path, { redirect: 'manual', ...init, headers: { ...bearer(admin), ...headers } });

  /** An answer, or only the beginning of a stream, or null if a paused run keeps the client waiting. */
  async function exchange({ path, method, headers, body, isStream }: RandomRequest) {
    const signal = path.startsWith('/v1/') ? AbortSignal.timeout(MAX_WAIT_MS) : null;
    try {
      const response = await send({ path, method, headers: sendable(headers), body, signal });
      const isOpen = isStream && response.ok && response.headers.get('Content-Type')?.includes('json') === false;
      const text = isOpen ? '' : await response.text();
      if (isOpen) await response.body?.cancel();
      const reply: Reply = { status: response.status, headers: response.headers, text };
      return { reply, isWhole: !isOpen };
    } catch (error) {
      if (signal?.aborted === true) return null;
      throw error;
    }
  }

  async function knownIds(): Promise<Map<string, string[]>> {
    const documents = (await (await send({ path: '/api/documents' })).json()) as readonly { readonly id: string }[];
    return new Map([
      ['run_id', []],
      ['response_id', []],
      ['blueprint_id', ['run', 'try']],
      ['document_id', documents.map(({ id }) => id)],
      ['name', ['other']],
    ]);
  }
});

function expectNoFault({ method }: RandomRequest, { status, headers, text }: Reply, told: string): void {
  const isRefusedForNow = status === 503 && headers.has('Retry-After');
  // A chat answers with the error of its run.
  const hasRunFailed = status === 502 && text.includes('"code":"run_failed"');
  expect(status < 500 || isRefusedForNow || hasRunFailed, `${told}: ${status} ${text}`).to.equal(true);
  if (status >= 400 && method !== 'HEAD') expect(JSON.parse(text), told).to.have.any.keys('detail', 'error');
}

/** The reachable memory of the clients and the service. */
function heapMb(): number {
  collectGarbage();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}

interface Sent extends RequestInit {
  readonly path: string;
  readonly headers?: Record<string, string>;
}

/** Removes requests that fetch refuses to send. */
function sendable(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => name !== 'Expect' && /^[\x20-\x7e]*$/.test(value)),
  );
}

/** Remembers the ids in an answer, so that later requests can use them. */
function remember(ids: Map<string, string[]>, { status, text }: Reply): void {
  if (status >= 300) return;
  const add = (kind: string, id: string): void => {
    const known = ids.get(kind) ?? [];
    if (!known.includes(id)) known.push(id);
    ids.set(kind, known.slice(-MAX_IDS));
  };
  for (const [, id = ''] of text.matchAll(/"run_id":"([^"]+)"/g)) add('run_id', id);
  for (const [, id = ''] of text.matchAll(/"id":"(resp_[0-9a-f]{32})"/g)) add('response_id', id);
  const made = /^\{"id":"([^"\\]+)"/.exec(text)?.[1];
  if (made !== undefined && text.includes('"nodes":')) add('blueprint_id', made);
}
