/** `council run`. */
import { hostname } from 'node:os';
import type { System } from '../../system/system.js';
import { nodeSystem } from '../../system/system.js';
import { readConfig, readCouncilKey } from '../../config.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { DataDirHeld, isWriteFailed } from '../../eventlog/errors.js';
import type { RunResult } from '../../generated/schemas.js';
import { openSchemas } from '../../api/schemas.js';
import { languageModel } from '../../models/provider.js';
import { endAsKilled } from '../../system/signals.js';
import { searchProvider } from '../../websearch/provider.js';
import type { ApprovalPrompt } from '../terminal/approval-prompt.js';
import { openApprovalPrompt, editText } from '../terminal/approval-prompt.js';
import type { RunDriver } from './driver.js';
import type { RemoteOptions } from './remote-driver.js';
import { RunRequestInvalid, readRunRequest, readArguments, USAGE } from './run-request.js';
import { CouncilError as ServiceError } from '../../client/errors.js';
import { keyHint } from '../service-faults.js';
import { writeResult, runCouncil } from './run-council.js';
import { printable } from '../terminal/printer.js';
import type { Progress } from '../terminal/progress.js';
import { openProgress } from '../terminal/progress.js';
import type { RunArguments } from './run-request.js';
import { UsageFault } from './command.js';
import type { CommandProcess } from './command.js';
import { EXIT } from './exit-codes.js';

/** Runs the council that the arguments name; resolves with the exit code. */
export async function run([, ...words]: readonly string[], here: CommandProcess): Promise<number> {
  try {
    const args = readArguments(words);
    if (args === null) {
      here.stdout.write(`${USAGE}\n`, () => undefined);
      return EXIT.done;
    }
    const result = await resultOf(args, here);
    await writeResult(result, { stream: here.stdout, isJson: args.isJson });
    return result.status === 'completed' ? EXIT.done : EXIT.failed;
  } catch (error) {
    return refuse(error, here);
  }
}

async function resultOf(args: RunArguments, here: CommandProcess): Promise<RunResult> {
  const system = nodeSystem();
  const { signal: cancelled } = here;
  const schemas = openSchemas();
  const { request, warnings } = readRunRequest(args, schemas);
  const progress = openProgress(here.stderr, system);
  const notify = (text: string): void => progress.say(text);
  const { url } = args;
  const open =
    url === null
      ? openEmbeddedDriver(here, system, notify)
      : openRemoteDriver(url, { key: readCouncilKey(here.env), system, notify, cancelled });
  const driver = await open;
  const prompt = args.isGodMode ? promptOn(progress, here) : null;
  try {
    for (const warning of warnings) notify(`Warning: ${warning}`);
    const result = await runCouncil(driver, request, { progress, prompt, cancelled });
    notify(outcomeOf(result, progress.elapsed()));
    return result;
  } finally {
    prompt?.close();
    progress.close();
    await driver.close();
  }
}

// Each driver is loaded only when it is used: with --url no engine, and for wrong arguments neither.

async function openRemoteDriver(url: string, options: RemoteOptions): Promise<RunDriver> {
  const { remoteDriver } = await import('./remote-driver.js');
  return remoteDriver(url, options);
}

/** The embedded driver, with the model and the data directory that the environment names; closing it frees both. */
async function openEmbeddedDriver(
  here: CommandProcess,
  system: System,
  notify: (text: string) => void,
): Promise<RunDriver> {
  const config = readConfig(here.env);
  const model = await languageModel(config.modelProvider, system);
  const dataDir = openDataDirectory(config.dataDir, {
    pid: process.pid,
    hostname: hostname(),
    startedAt: system.now(),
  });
  const onLogBroken = (error: unknown): void => {
    notify(`The event log has failed: ${String(error)}`);
    if (isWriteFailed(error)) endAsKilled();
    here.exit(EXIT.failed);
  };
  const webSearch = searchProvider(config.webSearch);
  const { embeddedDriver } = await import('./embedded-driver.js');
  const driver = await embeddedDriver(config, { dataDir, model, webSearch, system, notify, onLogBroken });
  const close = async (): Promise<void> => {
    await driver.close();
    dataDir.release();
  };
  return { ...driver, close };
}

function promptOn(progress: Progress, { env, stdin, stderr }: CommandProcess): ApprovalPrompt {
  const isTerminal = stdin.isTTY === true && stderr.isTTY;
  const command = env['EDITOR'] || null;
  return openApprovalPrompt({
    input: stdin,
    say: (text) => progress.say(text),
    edit: (text) => editText(text, { command, isTerminal }),
  });
}

function outcomeOf(result: RunResult, elapsed: string): string {
  const { status, run_id: runId, error, critic_score: score, iteration_count: iterations } = result;
  if (status === 'failed') return `Failed after ${elapsed}: ${error ?? 'no reason is recorded'}`;
  if (status !== 'completed') return `Run ${runId} stays ${status}: nobody decides on it here any more`;
  return `Completed in ${elapsed}: score ${score ?? 'none'}, iterations ${iterations ?? 0}`;
}

/** Reports a failure and returns its exit code. */
function refuse(error: unknown, { stderr }: CommandProcess): number {
  const isTold = error instanceof CouncilError || error instanceof ServiceError;
  const text = isTold ? error.message : error instanceof Error ? error.stack : String(error);
  stderr.write(`${printable(text ?? '')}${hintAt(error)}\n`);
  const isUsage = error instanceof UsageFault || error instanceof RunRequestInvalid || error instanceof ConfigInvalid;
  const isShutOut = error instanceof ServiceError && (error.status === 401 || error.status === 403);
  return isUsage || isShutOut ? EXIT.usage : EXIT.failed;
}

function hintAt(error: unknown): string {
  if (error instanceof UsageFault) return `\n\n${USAGE}`;
  if (!(error instanceof DataDirHeld)) return keyHint(error);
  return '; if it is the service, drive it with --url http://HOST:PORT';
}
