/** A run at a service, followed from its start to its end over connections that may break. */
import { CouncilError } from '../errors.js';
import type { ChannelMessage, RunResult } from '../generated/schemas.js';
import type { Channel } from './channel.js';
import type { Standing } from './driver.js';
import type { Patience } from './persist.js';
import { isAway, openOutage, RETURN_DEADLINE_MS } from './persist.js';

/** The service does not come back. */
export class ServiceLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.service-lost';
  constructor({ runId }: { readonly runId: string }) {
    const seconds = RETURN_DEADLINE_MS / 1_000;
    super(`Cannot follow run "${runId}", it may go on: the service has been away for ${seconds} s`, { runId });
  }
}

export interface Following {
  readonly poll: () => Promise<RunResult>;
  readonly channel: () => Channel;
  readonly patience: Patience;
}

/**
 * Where a run stands at every message of its channel. A channel that closes before the run has ended is opened again:
 * the service may have been restarted.
 *
 * @throws {ServiceLost} or what the service refuses
 */
export async function* followRun(runId: string, following: Following): AsyncGenerator<Standing> {
  const { poll, channel, patience } = following;
  const nodesAfter = nodesTold();
  const outage = openOutage(patience);
  for (;;) {
    const news = channel();
    try {
      for (let message = await news.next(); message !== null; message = await news.next()) {
        outage.end();
        const nodes = nodesAfter(message);
        yield standingOf(await poll(), nodes);
      }
      if (isOver(await poll())) return;
    } catch (error) {
      if (!isAway(error)) throw error;
    } finally {
      news.close();
    }
    if (await outage.sitOut()) continue;
    if (patience.signal.aborted) return;
    throw new ServiceLost({ runId });
  }
}

/** Which nodes run after each message. A pause tells those of a whole front, other news only the one started last. */
function nodesTold(): (message: ChannelMessage) => readonly string[] {
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

function standingOf(run: RunResult, nodes: readonly string[]): Standing {
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
