/** The channel of a run, as a client reads it. */
import { WebSocket } from 'ws';
import type { System } from '../../system/system.js';
import type { ChannelMessage, RunResult } from '../../generated/schemas.js';
import type { SchemaRegistry } from '../../api/schemas.js';
import type { Queue } from '../../system/async/queue.js';
import { queue } from '../../system/async/queue.js';
import { jsonValue, signature } from './rest.js';
import { CouncilError } from '../../errors.js';
import type { RunProgress } from '../commands/driver.js';
import type { RetryPolicy } from './retry.js';
import { RETURN_DEADLINE_MS, isAway, openOutage } from './retry.js';

/** Longest that the service may take to accept the socket, in milliseconds. */
const HANDSHAKE_DEADLINE_MS = 10_000;
/** Silence after which the connection counts as dead, in milliseconds: the service pings every 20 s. */
const SILENCE_MS = 60_000;

export interface ChannelOptions {
  /** Who asks; null: nobody. */
  readonly key: string | null;
  readonly schemas: SchemaRegistry;
  readonly system: Pick<System, 'after'>;
  /** Ends it. */
  readonly signal: AbortSignal;
}

export type Channel = Pick<Queue<ChannelMessage>, 'next'> & { close(): void };

/**
 * Opens a run's channel; it ends when the socket closes, for whatever reason, or falls silent. Messages of unknown form
 * are skipped.
 *
 * @param url of the service, without trailing slash
 */
export function openChannel(url: string, runId: string, { key, schemas, system, signal }: ChannelOptions): Channel {
  const isMessage = schemas.validator('channel-messages.json');
  const messages = queue<ChannelMessage>();
  const address = `${url.replace(/^http/, 'ws')}/ws/council/${runId}`;
  const socket = new WebSocket(address, { handshakeTimeout: HANDSHAKE_DEADLINE_MS, headers: signature(key) });
  const close = (): void => socket.terminate();
  let disarm = (): void => undefined;
  const arm = (): void => {
    disarm();
    disarm = system.after(SILENCE_MS, close);
  };
  socket.on('open', arm);
  socket.on('ping', arm);
  socket.on('message', (data: Buffer) => {
    const message = jsonValue(data.toString('utf8'));
    if (isMessage(message)) messages.put(message);
  });
  // `close` follows every error.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    disarm();
    signal.removeEventListener('abort', close);
    messages.end();
  });
  if (signal.aborted) close();
  else signal.addEventListener('abort', close);
  return { next: () => messages.next(), close };
}

// A run at a service, followed from its start to its end over connections that may break.

/** The service does not come back. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = RETURN_DEADLINE_MS / 1_000;
    super(`Cannot follow run "${runId}", it may go on: the service has been away for ${seconds} s`, { runId });
  }
}

export interface FollowDeps {
  readonly poll: () => Promise<RunResult>;
  readonly channel: () => Channel;
  readonly retryPolicy: RetryPolicy;
}

/**
 * The progress of a run at every message of its channel. A channel that closes before the run has ended is opened again:
 * the service may have been restarted.
 *
 * @throws {ServiceLost} or what the service refuses
 */
export async function* followRun(runId: string, deps: FollowDeps): AsyncGenerator<RunProgress> {
  const { poll, channel, retryPolicy } = deps;
  const nodesAfter = activeNodes();
  const outage = openOutage(retryPolicy);
  for (;;) {
    const messages = channel();
    try {
      for (let message = await messages.next(); message !== null; message = await messages.next()) {
        outage.end();
        const nodes = nodesAfter(message);
        yield progressOf(await poll(), nodes);
      }
      if (isOver(await poll())) return;
    } catch (error) {
      if (!isAway(error)) throw error;
    } finally {
      messages.close();
    }
    if (await outage.sitOut()) continue;
    if (retryPolicy.signal.aborted) return;
    throw new ServiceLost({ runId });
  }
}

/** The nodes that run after each message. A pause names a whole frontier, other messages only the node started last. */
function activeNodes(): (message: ChannelMessage) => readonly string[] {
  let nodes: readonly string[] = [];
  let next: readonly string[] = [];
  return (message) => {
    if (message.event === 'run_paused') next = message.next_nodes;
    if (message.event === 'node_active') nodes = message.node === 'done' ? [] : [message.node];
    else if (message.event === 'run_resumed') nodes = next;
    else if (message.event !== 'connected') nodes = [];
    return nodes;
  };
}

function progressOf(run: RunResult, nodes: readonly string[]): RunProgress {
  const isPaused = run.status === 'paused';
  return {
    nodes: isPaused ? [] : nodes,
    iteration: run.iteration_count,
    score: run.critic_score,
    isPaused,
  };
}

function isOver({ status }: RunResult): boolean {
  return status === 'completed' || status === 'failed';
}
