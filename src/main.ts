/** The process: environment, start, signals, stop. Everything else gets what it needs as an argument. */
import { hostname } from 'node:os';
import { pino } from 'pino';
import { systemAmbient } from './ambient.js';
import { readConfig } from './config.js';
import { openDataDir } from './data-dir.js';
import { ConfigInvalid, DataDirHeld } from './errors.js';
import { languageModel } from './model/provider.js';
import { startService } from './service.js';

/** Exit codes: a fault, an unusable setting. */
const EXIT_FAULT = 1;
const EXIT_CONFIG = 2;
/** A stop that takes longer is ended: nothing is lost by it (contract, section 1, signals). */
const STOP_DEADLINE_MS = 9_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const ambient = systemAmbient();
  const model = languageModel(config.modelProvider, ambient);
  const logger = pino({ level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const dataDir = openDataDir(config.dataDir, { pid: process.pid, hostname: hostname(), startedAt: ambient.now() });
  const starting = startService(config, { dataDir, model, ambient, logger });
  stopOnSignal(async () => {
    await (await starting).stop();
    dataDir.release();
    logger.info({}, 'stopped');
  });
  const service = await starting;
  process.stdout.write(`listening on ${service.url}\n`);
}

function stopOnSignal(stop: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = (): void => {
    if (isStopping) process.exit(EXIT_FAULT);
    isStopping = true;
    setTimeout(() => process.exit(EXIT_FAULT), STOP_DEADLINE_MS).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => refuse(error),
    );
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
