/** Clients of the REST edge: each starts a run, polls until it is completed, and starts the next. */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClosedLoop, LoopResult } from './closed-loop.js';
import { closedLoop } from './closed-loop.js';

export interface RestClients extends Pick<ClosedLoop, 'clients' | 'goesOn'> {
  /** The address of the service, with `http://`. */
  readonly url: string;
  /** Wait before each poll. */
  readonly pollMs: number;
}

/** Rejects if a run is refused or fails. Each client keeps one connection. */
export async function restLoad({ url, clients, pollMs, goesOn }: RestClients): Promise<LoopResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const runs = `${url}/api/councils/run`;
  const body = JSON.stringify({ input_topic: 'The sea' });
  const act = async (): Promise<void> => {
    const runId = textIn(await exchange(agent, runs, body), 'run_id');
    for (let status = 'pending'; status !== 'completed';) {
      await delay(pollMs);
      status = textIn(await exchange(agent, `${runs}/${runId}`, null), 'status');
      if (status === 'failed') throw new Error(`Run "${runId}" failed`);
    }
  };
  try {
    return await closedLoop({ clients, goesOn, act });
  } finally {
    agent.destroy();
  }
}

/** Sends a POST with a JSON body, or a GET if `body` is null. Returns the JSON value of the response. */
export function exchange(agent: Agent, url: string, body: string | null): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const method = body === null ? 'GET' : 'POST';
    const headers =
      body === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const sent = request(url, { agent, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode === 200 || statusCode === 202) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${url} returned ${statusCode}: ${text}`));
      });
    });
    sent.on('error', reject);
    sent.end(body ?? undefined);
  });
}

/** @throws {TypeError} the field is missing or no text */
function textIn(value: unknown, field: string): string {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
  if (typeof found === 'string') return found;
  throw new TypeError(`The service returned no "${field}": ${JSON.stringify(value)}`);
}
