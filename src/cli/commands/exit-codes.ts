/**
 * The exit code and the message of a failed command. Scripts rely on the codes (src/cli/README.md, "Exit codes of the
 * commands on a record").
 */
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { DataDirHeld, LogUnavailable } from '../../eventlog/errors.js';
import { KeyRefused, KeyTaken, KeyUnknown, TooManyKeys } from '../../keys/errors.js';
import { RunUnknown } from '../../run/errors.js';
import { LogUnreadable } from '../../eventlog/port.js';
import { CouncilError as ServiceError } from '../../client/errors.js';
import { ServiceLost, isAway, keyHint } from '../service-faults.js';
import { ReaderGone, printable, printerOn } from '../terminal/printer.js';
import { UsageFault } from './command.js';
import type { CommandProcess } from './command.js';
import type { VerificationResult } from '../records/record.js';
import { EventUnknown } from '../records/record.js';
import type { CommandName } from './audit-usage.js';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  noService: 3,
  unknown: 4,
  noData: 5,
  interrupted: 130,
} as const;

const VERIFIED = { valid: 0, notValid: 1, cannotTell: 2 } as const;

export function exitOfVerification({ isValid }: VerificationResult): number {
  if (isValid === null) return VERIFIED.cannotTell;
  return isValid ? VERIFIED.valid : VERIFIED.notValid;
}

/** @param command null: the arguments name none */
export function exitOfError(error: unknown, command: CommandName | null): number {
  return command === 'verify' ? VERIFIED.cannotTell : codeOf(error);
}

/** Refusals that mean a wrong request, or a wrong key. */
const USAGE_STATUS: readonly (number | null)[] = [400, 401, 403, 413, 422];
/** Exit codes by class of error; a missing key counts as wrong usage. */
const CODES: readonly (readonly [code: number, kinds: readonly (abstract new (...given: never) => Error)[]])[] = [
  [EXIT.usage, [UsageFault, ConfigInvalid, KeyRefused, KeyTaken, TooManyKeys]],
  [EXIT.unknown, [RunUnknown, EventUnknown, KeyUnknown]],
  [EXIT.noData, [DataDirHeld, LogUnreadable]],
  [EXIT.noService, [ServiceLost, LogUnavailable]],
];

function codeOf(error: unknown): number {
  const [code] = CODES.find(([, kinds]) => kinds.some((kind) => error instanceof kind)) ?? [];
  if (code !== undefined) return code;
  if (isAway(error)) return EXIT.noService;
  const isRefused = error instanceof ServiceError && USAGE_STATUS.includes(error.status);
  return isRefused ? EXIT.usage : EXIT.failed;
}

/** The message of a failure. @param usage of the command, added for refused arguments */
export function messageOf(error: unknown, usage: string): string {
  if (error instanceof UsageFault) return `${error.message}\n\n${usage}`;
  if (error instanceof ServiceError) return error.message + keyHint(error);
  if (!(error instanceof CouncilError)) return error instanceof Error ? (error.stack ?? '') : String(error);
  const isHere = error instanceof DataDirHeld || error instanceof LogUnreadable;
  return isHere ? `${error.message}; ask a running service with --url http://HOST:PORT` : error.message;
}

/** The message of a failure of a command that no service could be asked instead of. */
export function plainMessageOf(error: unknown): string {
  return error instanceof CouncilError ? error.message : messageOf(error, '');
}

/** Prints lines. Without a reader nothing is printed, and the exit code still tells the result. */
export type Say = (text: string) => Promise<void>;

/** Runs a command on the log of a stopped service; its error is told in plain words. */
export async function exitOfLogCommand(
  { stdout, stderr }: Pick<CommandProcess, 'stdout' | 'stderr'>,
  command: (say: Say) => Promise<number>,
): Promise<number> {
  const print = printerOn(stdout);
  const say: Say = (text) =>
    print(`${printable(text)}\n`).catch((error: unknown) => {
      if (!(error instanceof ReaderGone)) throw error;
    });
  try {
    return await command(say);
  } catch (error) {
    stderr.write(`${printable(plainMessageOf(error))}\n`);
    return exitOfError(error, null);
  }
}
