/**
 * A client of the REST API. It checks each answer against the OpenAPI document, and returns it with the type of a
 * schema.
 */
import { expect } from 'chai';
import type { Problem, RunResult } from '../../src/generated/schemas.js';
import type { Described, SchemaName } from '../../src/api/schemas.js';
import { schemaCheck } from './schema-check.js';
import { documentedAt } from './documented.js';
import { untilTrue } from './until-true.js';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  /** Body: text and bytes unchanged, other values as JSON with its media type. */
  readonly body?: unknown;
}

export interface RestClient {
  /** @throws when the answer differs from the document */
  send(method: string, path: string, sent?: Sent): Promise<Reply>;
  get(path: string): Promise<Reply>;
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** The answer, which must have this status and fit this schema. */
  read<N extends SchemaName>(reply: Reply, status: number, schema: N): Described<N>;
  /** The problem, which must have this status. */
  problem(reply: Reply, status: number): Problem;
  /** Id of a new run of the fixed graph. */
  start(topic?: string): Promise<string>;
  poll(runId: string): Promise<RunResult>;
  /** Polls until a run meets a condition. */
  until(runId: string, isWanted: (run: RunResult) => boolean): Promise<RunResult>;
}

/** @param always default headers of each request */
export function restClient(url: string, always: Readonly<Record<string, string>> = {}): RestClient {
  async function send(method: string, path: string, { headers = {}, body }: Sent = {}): Promise<Reply> {
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
    const reply = await fetch(url + path, {
      method,
      headers: { ...always, ...(isRaw ? {} : { 'Content-Type': 'application/json' }), ...headers },
      redirect: 'manual',
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
    });
    const answer = { status: reply.status, headers: reply.headers, text: await reply.text() };
    const expectDocumented = await documentedAt(url, always);
    expectDocumented({ method, path }, answer);
    return answer;
  }

  function read<N extends SchemaName>(reply: Reply, status: number, schema: N): Described<N> {
    expect(reply.status, reply.text).to.equal(status);
    expect(reply.headers.get('Content-Type')).to.equal('application/json; charset=utf-8');
    const value: unknown = JSON.parse(reply.text);
    const validate = schemaCheck(schema);
    if (validate(value)) return value;
    throw new Error(`${reply.text} is no ${schema}: ${JSON.stringify(validate.errors)}`);
  }

  const get = (path: string): Promise<Reply> => send('GET', path);
  const poll = async (runId: string): Promise<RunResult> =>
    read(await get(`/api/councils/run/${runId}`), 200, 'run-result.json');

  return {
    send,
    get,
    post: (path, body, headers = {}) => send('POST', path, { body, headers }),
    read,
    problem: (reply, status) => read(reply, status, 'problem.json'),
    async start(topic = 'Trees') {
      const reply = await send('POST', '/api/councils/run', { body: { input_topic: topic } });
      return read(reply, 202, 'run-start.json').run_id;
    },
    poll,
    async until(runId, isWanted) {
      let run = await poll(runId);
      await untilTrue(async () => isWanted(run) || isWanted((run = await poll(runId))));
      return run;
    },
  };
}

/** A run id that no run has. */
export const NO_RUN = '00000000-0000-4000-8000-000000000000';

/** Whether a run has ended. */
export function isOver(run: RunResult): boolean {
  return run.status === 'completed' || run.status === 'failed';
}
