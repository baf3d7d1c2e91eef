import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { fieldOf, isRecord } from '../../src/system/untrusted.js';
import { instantModel } from '../support/instant-model.js';
import { MCP_ACCEPT, mcpClient } from '../support/mcp-client.js';
import type { RequestDocument } from '../support/random-requests.js';
import { randomRequests } from '../support/random-requests.js';
import { NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20261126);
const CALLS = Number(process.env['REQUESTS'] ?? (IS_SOAK ? 200_000 : 100));
/** Concurrent clients. */
const CLIENTS = 8;
const MAX_IDS = 50;

describe(`Random calls of the tools of MCP (SEED=${SEED})`, () => {
  let service: RunningService;

  before(async () => {
    service = await startService({ model: instantModel() });
    const nodes = [{ id: 'poet' }, { id: 'reader' }];
    const saved = { id: 'pair', name: 'Pair', nodes, edges: [{ source: 'poet', target: 'reader' }] };
    expect((await restClient(service.url).post('/api/councils/', saved)).status).to.equal(201);
  });
  after(() => service.stop());

  it(`get results in their forms and cause no fault, for ${CALLS} calls${IS_SOAK ? ' and until each has succeeded' : ''}`, async () => {
    const mcp = await mcpClient(service.url);
    const tools = await mcp.tools();
    await mcp.close();
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const compiled = (schema: object = {}): ValidateFunction => ajv.compile(schema);
    const outputs = new Map(tools.map(({ name, outputSchema }) => [name, compiled(outputSchema)]));
    /** Ids that calls choose from; later runs replace earlier ones. */
    const runIds = [NO_RUN];
    const ids = new Map([['run_id', runIds]]);
    const next = randomRequests(documentOf(tools, runIds), { random: seededRandom(SEED), ids });
    /** How many calls of each tool succeeded and failed. */
    const counts = new Map<string, number>();
    const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
    const haveAllSucceeded = (): boolean => tools.every(({ name }) => counts.has(`${name} succeeded`));
    let left = CALLS;

    async function client(): Promise<void> {
      while (left > 0 || (IS_SOAK && !haveAllSucceeded())) {
        left -= 1;
        const { path, method, headers, body } = next();
        const given = { ...MCP_ACCEPT, ...sendable(headers) };
        const response = await fetch(service.url + path, { method, headers: given, body });
        const text = await response.text();
        const told = `${String(body)}: ${response.status} ${text}`;
        expect(response.status < 500 || response.headers.has('Retry-After'), told).to.equal(true);
        if (response.status >= 400 && method !== 'HEAD')
          expect(JSON.parse(text), told).to.have.any.keys('detail', 'error');
        const answer = response.status === 200 ? answerIn(text) : null;
        if (answer !== null) count(checked(answer, toolIn(body), outputs, told));
        remember(runIds, text);
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client));

    expect(service.faults).to.deep.equal([]);
    // A tool may need some hundred calls.
    for (const { name } of tools.filter(({ inputSchema }) => IS_SOAK && inputSchema.required !== undefined))
      expect(counts.get(`${name} failed`), name).to.be.above(0);
    expect(service.context.feed.size).to.equal(0);
  });
});

/** Checks an answer. Returns what was called, and whether it succeeded. */
function checked(answer: unknown, tool: string, outputs: ReadonlyMap<string, ValidateFunction>, told: string): string {
  const result = fieldOf(answer, 'result');
  if (result === undefined) {
    expect(fieldOf(fieldOf(answer, 'error'), 'message'), told).to.be.a('string');
    return 'protocol error';
  }
  const validate = outputs.get(tool);
  const content = fieldOf(result, 'content');
  if (validate === undefined || !Array.isArray(content)) return 'other method';
  expect(fieldOf(content[0], 'text'), told).to.be.a('string').that.is.not.empty;
  if (fieldOf(result, 'isError') === true) return `${tool} failed`;
  expect(validate(fieldOf(result, 'structuredContent')), `${told} ${JSON.stringify(validate.errors)}`).to.equal(true);
  return `${tool} succeeded`;
}

/** The last message of an answer: its stream's last event. */
function answerIn(text: string): unknown {
  const data = text.split('\n').filter((line) => line.startsWith('data: '));
  return JSON.parse(data.at(-1)?.slice('data: '.length) ?? 'null');
}

function toolIn(body: string | Uint8Array | null): string {
  try {
    const text = typeof body === 'string' ? body : Buffer.from(body ?? []).toString();
    return String(fieldOf(fieldOf(JSON.parse(text), 'params'), 'name'));
  } catch {
    return '';
  }
}

/** A document of calls, from which random requests are made. */
function documentOf(
  tools: readonly { readonly name: string; readonly inputSchema: object }[],
  runIds: readonly string[],
): RequestDocument {
  const messages = tools.map(({ name, inputSchema }) => ({
    type: 'object',
    required: ['jsonrpc', 'id', 'method', 'params'],
    properties: {
      jsonrpc: { const: '2.0' },
      id: { type: 'integer' },
      method: { type: 'string', enum: ['tools/call', 'tools/call', 'tools/call', 'tools/list', 'ping', 'initialize'] },
      params: {
        type: 'object',
        required: ['name', 'arguments'],
        properties: { name: { const: name }, arguments: { ...inputSchema, ...narrowed(inputSchema, runIds) } },
      },
    },
  }));
  const content = { 'application/json': { schema: { oneOf: messages } } };
  return { paths: { '/mcp': { post: { requestBody: { content }, responses: {} } } }, components: { schemas: {} } };
}

/** Known runs, short waits, the saved council, and changes of a state. */
function narrowed(schema: object, runIds: readonly string[]): object {
  const properties = fieldOf(schema, 'properties');
  if (!isRecord(properties)) return {};
  const state = { current_draft: { type: 'string' }, critic_score: { type: 'number', maximum: 10 } };
  const others: Readonly<Record<string, unknown>> = {
    run_id: { type: 'string', enum: runIds },
    timeout_s: { type: 'number', enum: [0, 0.01, 0.05, 51, -1] },
    council: { type: 'string', enum: ['pair', 'pair', 'nobody', '../run'] },
    god_mode: { type: 'boolean', enum: [true] },
    // That of a first pause.
    expected_seq: { type: 'integer', enum: [3, 3, 3, 9] },
    modified_state: { type: 'object', properties: state },
  };
  return {
    properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, others[name] ?? each])),
  };
}

/** Removes headers that fetch refuses to send. */
function sendable(headers: Readonly<Record<string, string>>): Record<string, string> {
  const isSendable = ([name, value]: readonly [string, string]): boolean =>
    name !== 'Expect' && /^[\x20-\x7e]*$/.test(value);
  return Object.fromEntries(Object.entries(headers).filter(isSendable));
}

function remember(runIds: string[], text: string): void {
  for (const [, id = ''] of text.matchAll(/"run_id":"([0-9a-f-]{36})"/g)) if (!runIds.includes(id)) runIds.push(id);
  if (runIds.length > MAX_IDS) runIds.splice(0, runIds.length - MAX_IDS);
}
