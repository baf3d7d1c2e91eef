/** The engine without HTTP: one call per run. */
import { nodeSystem } from '../../src/system/system.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import type { OpenEngineOptions } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';

export interface BenchEngine {
  /** Starts a run. Resolves when its end is durable, rejects if it fails. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the engine on a folder. Recognises the end of a run in its acknowledged appends, because another subscription
 * would add load that the service does not have.
 */
export async function openBenchEngine(options: OpenEngineOptions): Promise<BenchEngine> {
  const waiting = new Map<string, Waiting>();
  const onAppended = (stream: string, events: readonly NewEvent[]): void => {
    const last = events.at(-1);
    if (last?.type === 'RunCompleted') waiting.get(stream)?.resolve();
    if (last?.type === 'RunFailed') waiting.get(stream)?.reject(new Error(`A run failed: ${last.data}`));
  };
  const engine = await openTestEngine({ ...options, decorate: (log) => observed(log, onAppended) });
  await engine.recover();
  const { uuid } = nodeSystem();
  // Frozen and hashed once, as in the start endpoint.
  const template = runRequest('');
  return {
    async run() {
      const runId = uuid();
      const stream = `run-${runId}`;
      const ended = new Promise<void>((resolve, reject) => waiting.set(stream, { resolve, reject }));
      await Promise.all([ended, engine.registry.start({ ...template, runId })]).finally(() => waiting.delete(stream));
    },
    async stop() {
      await engine.stop();
      if (engine.faults.length > 0) throw new Error(`The engine had faults: ${JSON.stringify(engine.faults[0])}`);
    },
  };
}

/** Calls `onAppended` for each append after the log acknowledges it. */
function observed(log: EventLog, onAppended: (stream: string, events: readonly NewEvent[]) => void): EventLog {
  return changedLog(log, {
    append(stream, events, expected) {
      const appended = log.append(stream, events, expected);
      appended.then(
        () => onAppended(stream, events),
        () => undefined,
      );
      return appended;
    },
  });
}
