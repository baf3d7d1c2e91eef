/** The engine under load: whole runs of the fixed graph with an instant model, every step durable before the next. */
import { systemAmbient } from '../../src/ambient.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';

export interface EngineRate {
  readonly concurrent: number;
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs `total` runs of the fixed graph, `concurrent` at a time. */
export async function engineRate({ concurrent, total }: { concurrent: number; total: number }): Promise<EngineRate> {
  const dir = tempDir();
  const engine = await openTestEngine({ path: dir.path, model: instantModel() });
  await engine.recover();
  const { uuid } = systemAmbient();
  const finished = new Map<string, () => void>();
  const abort = new AbortController();
  const following = (async () => {
    for await (const followed of engine.log.subscribe(await engine.log.head(), { signal: abort.signal })) {
      if (followed.kind !== 'event' || followed.event.type !== 'RunCompleted') continue;
      finished.get(followed.event.stream)?.();
    }
  })();
  const latencies: number[] = [];
  let started = 0;
  const worker = async (): Promise<void> => {
    while (started < total) {
      started += 1;
      const runId = uuid();
      const from = performance.now();
      await new Promise<void>((resolve, reject) => {
        finished.set(`run-${runId}`, resolve);
        engine.registry.start(runRequest(runId)).catch(reject);
      });
      finished.delete(`run-${runId}`);
      latencies.push(performance.now() - from);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: concurrent }, worker));
  const elapsedMs = performance.now() - from;
  abort.abort();
  await following;
  await engine.stop();
  dir.remove();
  latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { concurrent, runsPerSecond: (total / elapsedMs) * 1000, p50Ms: at(0.5), p99Ms: at(0.99) };
}
