/** The process: environment, start, signals, stop. All other code receives these as arguments. */
import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { pino } from 'pino';
import { nodeSystem } from './system/system.js';
import { readConfig } from './config.js';
import { openDataDirectory } from './app/data-directory.js';
import { maxOpenFiles } from './app/connection-bound.js';
import { ConfigInvalid, CouncilError } from './errors.js';
import { DataDirHeld, isWriteFailed } from './eventlog/errors.js';
import { routedModel } from './models/providers.js';
import type { Service } from './app/service.js';
import type { Logger } from './system/logger.js';
import { ignoreDebuggers, killProcess, onSignals } from './system/signals.js';
import { searchProvider } from './websearch/provider.js';

/** Exit codes: a fault, an unusable setting. */
const EXIT_FAULT = 1;
const EXIT_CONFIG = 2;
/** A stop that takes longer is aborted, in milliseconds; nothing recorded is lost. */
const STOP_DEADLINE_MS = 9_000;
/**
 * The heap may double before V8 collects its garbage; by default it may grow fourfold. Crowds that read large records
 * leave so much garbage that the default costs hundreds of megabytes.
 */
const HEAP_GROWTH = '--heap-growing-percent=100';

async function main(): Promise<void> {
  setFlagsFromString(HEAP_GROWTH);
  ignoreDebuggers();
  const system = nodeSystem();
  let started: { readonly service: Service | null; readonly release: () => void } | null = null;
  // While the log is away there is no service to stop.
  const stop = async (): Promise<void> => {
    system.after(STOP_DEADLINE_MS, endFaulty);
    await started?.service?.stop();
    started?.release();
    process.exit(0);
  };
  onSignals(system, () => void stop().catch(refuse), endFaulty);
  // The service continues when the reader of its standard output goes away.
  process.stdout.on('error', () => undefined);

  const config = readConfig(process.env);
  const model = routedModel(config.providers, { ...config, system });
  const format = { level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  // The ready line goes to the same stream, so that the two keep their order.
  const logger = pino(format, process.stdout);
  for (const warning of config.warnings) logger.warn({}, warning);
  const dataDir = openDataDirectory(config.dataDir, {
    pid: process.pid,
    hostname: hostname(),
    startedAt: system.now(),
  });
  const release = (): void => dataDir.release();
  started = { service: null, release };
  const onLogBroken = (error: unknown): void => endWithLog(error, logger);
  const webSearch = searchProvider(config.webSearch);
  // Loaded last, so that an unusable setting or folder is refused at once.
  const { startService } = await import('./app/service.js');
  const means = { dataDir, model, webSearch, system, logger, onLogBroken };
  const onListening = (url: string): void => void process.stdout.write(`listening on ${url}\n`);
  const starting = startService(config, { ...means, maxFiles: maxOpenFiles(), onListening });
  const service = await starting.catch((error: unknown) => {
    release();
    throw error;
  });
  started = { service, release };
}

/** Ends the process because the log accepts nothing more. */
function endWithLog(error: unknown, logger: Logger): void {
  logger.error({ err: error }, 'the event log failed: stopping the service');
  if (isWriteFailed(error)) killProcess();
  endFaulty();
}

function endFaulty(): never {
  process.exit(EXIT_FAULT);
}

function refuse(error: unknown): never {
  const isExpected = error instanceof CouncilError;
  const text = error instanceof Error ? (isExpected ? error.message : (error.stack ?? error.message)) : String(error);
  const hint = error instanceof DataDirHeld ? '. Stop it, or set DATA_DIR to another folder' : '';
  process.stderr.write(`${text}${hint}\n`);
  process.exit(error instanceof ConfigInvalid ? EXIT_CONFIG : EXIT_FAULT);
}

main().catch(refuse);
