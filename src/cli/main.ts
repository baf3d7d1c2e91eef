/** `council run`: arguments, environment, signals, exit code. Everything else gets what it needs as an argument. */
import type { Ambient } from '../ambient.js';
import { systemAmbient } from '../ambient.js';
import { readConfig } from '../config.js';
import { ConfigInvalid, CouncilError, DataDirHeld } from '../errors.js';
import type { RunResult } from '../generated/schemas.js';
import type { SchemaShelf } from '../http/schema.js';
import { openSchemas } from '../http/schema.js';
import { runCouncil } from './council-run.js';
import type { Desk } from './desk.js';
import { openDesk } from './desk.js';
import type { RunDriver } from './driver.js';
import { editText } from './editor.js';
import { embeddedDriver } from './embedded.js';
import { readOrder } from './order.js';
import type { Progress } from './progress.js';
import { openProgress } from './progress.js';
import { remoteDriver } from './remote.js';
import { readArguments, USAGE, UsageFault } from './usage.js';

/** Exit codes: the run did not complete, wrong usage or an unusable setting. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** A terminal signals the whole process group and npx passes the signal on: the same wish, heard twice. */
const SAME_SIGNAL_MS = 500;

async function main(words: readonly string[]): Promise<number> {
  const wish = readArguments(words);
  if (wish === null) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const ambient = systemAmbient();
  const schemas = openSchemas();
  const { order, warnings } = readOrder(wish, schemas);
  const cancelled = onSignal(ambient);
  // Whoever reads the streams may go away; the run goes on.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

  const driver = await openDriver(wish.url, ambient, schemas);
  const progress = openProgress(process.stderr, ambient);
  const desk = wish.isGodMode ? deskOn(progress) : null;
  try {
    for (const warning of warnings) progress.say(`Warning: ${warning}`);
    const result = await runCouncil(driver, order, { progress, desk, cancelled });
    progress.say(outcomeOf(result, progress.elapsed()));
    const output = wish.isJson ? JSON.stringify(result) : result.final_draft;
    if (output !== null) process.stdout.write(`${output}\n`);
    return result.status === 'completed' ? 0 : EXIT_FAILED;
  } finally {
    desk?.close();
    progress.close();
    await driver.close();
  }
}

async function openDriver(url: string | null, ambient: Ambient, schemas: SchemaShelf): Promise<RunDriver> {
  if (url !== null) return remoteDriver(url, { ambient, schemas });
  const onFault = (fields: object, message: string): void => {
    process.stderr.write(`${message}${'err' in fields ? `: ${String(fields.err)}` : ''}\n`);
  };
  const onLogBroken = (error: unknown): void => {
    onFault({ err: error }, 'the event log has failed');
    process.exit(EXIT_FAILED);
  };
  return await embeddedDriver(readConfig(process.env), { ambient, onFault, onLogBroken });
}

function deskOn(progress: Progress): Desk {
  const command = process.env['EDITOR'] || 'vi';
  return openDesk({
    input: process.stdin,
    say: (text) => progress.say(text),
    edit: (text) => editText(text, command, process.stdin.isTTY),
  });
}

/** Aborts on the first signal; a second one ends the process at once. */
function onSignal(ambient: Ambient): AbortSignal {
  const cancelled = new AbortController();
  let firstMs: number | null = null;
  const hear = (): void => {
    if (firstMs !== null && ambient.monotonicMs() - firstMs > SAME_SIGNAL_MS) process.exit(EXIT_FAILED);
    firstMs ??= ambient.monotonicMs();
    cancelled.abort();
  };
  process.on('SIGINT', hear);
  process.on('SIGTERM', hear);
  return cancelled.signal;
}

function outcomeOf(result: RunResult, elapsed: string): string {
  const { status, run_id: runId, error, critic_score: score, iteration_count: iterations } = result;
  if (status === 'failed') return `Failed after ${elapsed}: ${error ?? 'no reason is recorded'}`;
  if (status !== 'completed') return `Run ${runId} stays ${status}: nobody decides on it here any more`;
  return `Completed in ${elapsed}: score ${score ?? 'none'}, iterations ${iterations ?? 0}`;
}

/** What is said of a failure, and the exit code it ends with. */
function refuse(error: unknown): number {
  if (error instanceof UsageFault) {
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    return EXIT_USAGE;
  }
  const hint = error instanceof DataDirHeld ? '; if it is the service, drive it with --url http://HOST:PORT' : '';
  const text = error instanceof CouncilError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}${hint}\n`);
  return error instanceof ConfigInvalid ? EXIT_USAGE : EXIT_FAILED;
}

process.exitCode = await main(process.argv.slice(3)).catch(refuse);
