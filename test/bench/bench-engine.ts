/** The engine as the benchmark drives it: no edge, one call a run. */
import { nodeSystem } from '../../src/system/system.js';
import type { RunRequestedData } from '../../src/generated/schemas.js';
import type { EventLog, NewEvent } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import type { OpenEngineOptions } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';

export interface BenchEngine {
  /** Starts a run; resolves once its end is durable, rejects when it fails. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

export interface BenchEngineOptions extends OpenEngineOptions {
  /** What is run, whatever its id; the fixed graph by default. Frozen and hashed once, as the start endpoint does. */
  readonly template?: RunRequestedData;
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the engine on a folder. Ends are told by the appends themselves as they are acknowledged: a subscription of
 * the benchmark's own would be load that the service does not have.
 */
export async function openBenchEngine(options: BenchEngineOptions): Promise<BenchEngine> {
  const waiting = new Map<string, Waiting>();
  const onAppended = (stream: string, events: readonly NewEvent[]): void => {
    const last = events.at(-1);
    if (last?.type === 'RunCompleted') waiting.get(stream)?.resolve();
    if (last?.type === 'RunFailed') waiting.get(stream)?.reject(new Error(`A run failed: ${last.data}`));
  };
  const engine = await openTestEngine({ ...options, decorate: (log) => overheard(log, onAppended) });
  await engine.recover();
  const { uuid } = nodeSystem();
  const { template = runRequest('') } = options;
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

/** A log that tells of each append as soon as it is acknowledged. */
export function overheard(log: EventLog, onAppended: (stream: string, events: readonly NewEvent[]) => void): EventLog {
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
