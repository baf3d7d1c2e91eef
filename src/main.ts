/** The process: environment, start, signals, stop. Everything else gets what it needs as an argument. */
import { hostname } from 'node:os';
import { pino } from 'pino';
import type { Ambient } from './ambient.js';
import { systemAmbient } from './ambient.js';
import { readConfig } from './config.js';
import { openDataDir } from './data-dir.js';
import { ConfigInvalid, DataDirHeld } from './errors.js';
import { languageModel } from './model/provider.js';
import type { Service } from './service.js';
import { startService } from './service.js';
import { searchProvider } from './tools/provider.js';

/** Exit codes: a fault, an unusable setting. */
const EXIT_FAULT = 1;
const EXIT_CONFIG = 2;
/** A stop that takes longer is ended: nothing is lost by it (contract, section 1, signals). */
const STOP_DEADLINE_MS = 9_000;

/** A terminal signals the whole process group and npm passes the signal on: the same wish, heard twice. */
const SAME_SIGNAL_MS = 500;

async function main(): Promise<void> {
  const ambient = systemAmbient();
  let started: { readonly service: Service; readonly release: () => void } | null = null;
  stopOnSignal(ambient, async () => {
    await started?.service.stop();
    started?.release();
  });
  // Whoever reads standard output may go away; the service goes on.
  process.stdout.on('error', () => undefined);

  const config = readConfig(process.env);
  const model = await languageModel(config.modelProvider, ambient);
  const format = { level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  // The same stream as the ready line's, so that the two keep their order.
  const logger = pino(format, process.stdout);
  const dataDir = openDataDir(config.dataDir, { pid: process.pid, hostname: hostname(), startedAt: ambient.now() });
  const onLogBroken = (error: unknown): void => {
    logger.error({ err: error }, 'the event log has failed: stopping');
    process.exit(EXIT_FAULT);
  };
  const webSearch = searchProvider(config.webSearch);
  const service = await startService(config, { dataDir, model, webSearch, ambient, logger, onLogBroken });
  started = { service, release: () => dataDir.release() };
  process.stdout.write(`listening on ${service.url}\n`);
}

/** Stops on the first signal, at once on a second one. Before the start is through there is nothing to stop. */
function stopOnSignal(ambient: Ambient, stop: () => Promise<void>): void {
  let firstMs: number | null = null;
  const onSignal = (): void => {
    if (firstMs !== null) {
      if (ambient.monotonicMs() - firstMs > SAME_SIGNAL_MS) process.exit(EXIT_FAULT);
      return;
    }
    firstMs = ambient.monotonicMs();
    ambient.after(STOP_DEADLINE_MS, () => process.exit(EXIT_FAULT));
    stop().then(() => process.exit(0), refuse);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

function refuse(error: unknown): never {
  const isExpected = error instanceof ConfigInvalid || error instanceof DataDirHeld;
  const text = error instanceof Error ? (isExpected ? error.message : (error.stack ?? error.message)) : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(error instanceof ConfigInvalid ? EXIT_CONFIG : EXIT_FAULT);
}

main().catch(refuse);
