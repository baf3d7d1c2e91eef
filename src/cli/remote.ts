/** Drives a running service in the way of every client: REST for what is asked of it, the run's channel for its news. */
import type { Ambient } from '../ambient.js';
import type { RunResult } from '../generated/schemas.js';
import type { Described, SchemaName, SchemaShelf } from '../http/schema.js';
import { wait } from '../wait.js';
import { openChannel } from './channel.js';
import type { Decision, RunDriver, RunOrder, Standing } from './driver.js';
import type { Reply, RestCalls } from './rest.js';
import { restCalls, ServiceRefused, ServiceUnreachable } from './rest.js';

/** A service that stops is given this long to come back: tries, and milliseconds between them. */
const MAX_RETURNS = 60;
const RETURN_MS = 500;

export interface RemoteOptions {
  readonly ambient: Ambient;
  readonly schemas: SchemaShelf;
}

/** A driver of the service at an address; nothing is sent before the first call. */
export function remoteDriver(url: string, { ambient, schemas }: RemoteOptions): RunDriver {
  const rest = restCalls(url);
  const closed = new AbortController();
  const read = <N extends SchemaName>(reply: Reply, name: N): Described<N> => {
    const validate = schemas.validator(name);
    if (validate(reply.value)) return reply.value;
    throw new ServiceRefused({ status: reply.status, detail: `${url} answers something that is no ${name}` });
  };
  const poll = async (runId: string): Promise<RunResult> =>
    read(await rest.send('GET', `/api/councils/run/${runId}`), 'run-result.json');
  return {
    place: `at ${url}`,
    start: async (order) => read(await start(rest, order), 'run-start.json').run_id,
    follow: (runId) =>
      follow(runId, {
        poll,
        channel: () => openChannel(url, runId, schemas),
        pause: () => wait(ambient, RETURN_MS, closed.signal),
      }),
    async pause(runId) {
      const state = read(await rest.send('GET', `/api/councils/run/${runId}/state`), 'god-mode-state.json');
      return state.paused ? state : null;
    },
    decide: (runId, seq, decision) => decide(rest, runId, { seq, decision }),
    async cancel(runId) {
      await rest.send('POST', `/api/councils/run/${runId}/cancel`).catch((error: unknown) => {
        if (!(error instanceof ServiceRefused && error.data.status === 409)) throw error;
      });
    },
    result: poll,
    close: async () => closed.abort(),
  };
}

/** A blueprint is saved under an id of its own for the start alone: the run keeps it frozen, the service does not. */
async function start(rest: RestCalls, { topic, isGodMode, blueprint }: RunOrder): Promise<Reply> {
  const request = { input_topic: topic, god_mode: isGodMode };
  if (blueprint === null) return await rest.send('POST', '/api/councils/run', request);
  const { name, nodes, edges } = blueprint;
  const { location } = await rest.send('POST', '/api/councils/', { name, nodes, ...(edges && { edges }) });
  try {
    return await rest.send('POST', `${location}/run`, request);
  } finally {
    await rest.send('DELETE', location);
  }
}

interface Following {
  readonly poll: (runId: string) => Promise<RunResult>;
  readonly channel: () => ReturnType<typeof openChannel>;
  /** Waits before another try. */
  readonly pause: () => Promise<void>;
}

/** A channel that closes before the run has ended is opened again: the service may have been restarted. */
async function* follow(runId: string, { poll, channel, pause }: Following): AsyncGenerator<Standing> {
  let node: string | null = null;
  for (let tries = 0; ; tries += 1) {
    const news = channel();
    try {
      for (let message = await news.next(); message !== null; message = await news.next()) {
        tries = 0;
        if (message.event === 'node_active') node = message.node;
        yield standingOf(await poll(runId), node);
      }
      if (isOver(await poll(runId))) return;
    } catch (error) {
      if (!(error instanceof ServiceUnreachable) || tries >= MAX_RETURNS) throw error;
    } finally {
      news.close();
    }
    if (tries >= MAX_RETURNS) throw new ServiceRefused({ status: 0, detail: "The run's channel cannot be opened" });
    await pause();
  }
}

function standingOf(
  { status, iteration_count: iteration, critic_score: score }: RunResult,
  node: string | null,
): Standing {
  return { node, iteration, score, isPaused: status === 'paused' };
}

function isOver({ status }: RunResult): boolean {
  return status === 'completed' || status === 'failed';
}

async function decide(
  rest: RestCalls,
  runId: string,
  { seq, decision }: { readonly seq: number; readonly decision: Decision },
): Promise<string | null> {
  const { action } = decision;
  const override = decision.action === 'modify' ? { modified_state: { current_draft: decision.draft } } : {};
  try {
    await rest.send('POST', `/api/councils/run/${runId}/approve`, { action, expected_seq: seq, ...override });
    return null;
  } catch (error) {
    if (error instanceof ServiceRefused && error.data.status < 500) return error.message;
    throw error;
  }
}
