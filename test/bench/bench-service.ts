/** The service as the benchmark drives it: in this process, so that appends and arrivals are told by one clock. */
import { hostname } from 'node:os';
import { nodeSystem } from '../../src/system/system.js';
import { readConfig } from '../../src/config.js';
import { openDataDirectory } from '../../src/app/data-directory.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { NewEvent } from '../../src/eventlog/port.js';
import type { LanguageModel } from '../../src/models/port.js';
import { startService } from '../../src/app/service.js';
import { overheard } from './bench-engine.js';

/** `stop` rejects when the service had faults. */
export async function openBenchService({
  path,
  model,
  onAppended,
}: {
  readonly path: string;
  readonly model: LanguageModel;
  /** Told of each append once it is acknowledged. */
  readonly onAppended: (stream: string, events: readonly NewEvent[]) => void;
}): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const system = nodeSystem();
  const dataDir = openDataDirectory(path, { pid: process.pid, hostname: hostname(), startedAt: system.now() });
  const faults: object[] = [];
  const service = await startService(
    { ...readConfig({}), port: 0, dataDir: path },
    {
      dataDir,
      model,
      system,
      logger: { info: () => undefined, warn: () => undefined, error: (fields) => void faults.push(fields) },
      overrides: { openLog: async (at) => overheard(await openEmbeddedLog(at), onAppended) },
    },
  );
  const stop = async (): Promise<void> => {
    await service.stop();
    dataDir.release();
    if (faults.length > 0) throw new Error(`The service had faults: ${JSON.stringify(faults[0])}`);
  };
  return { url: service.url, stop };
}
