/**
 * The exit code and the message of a failed command. Scripts rely on the codes (src/cli/README.md, "Exit codes of the
 * commands on a record").
 */
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { DataDirHeld, LogUnavailable } from '../../eventlog/errors.js';
import { KeyRefused, KeyTaken, KeyUnknown, TooManyKeys } from '../../keys/errors.js';
import { RunErased, RunUnknown } from '../../run/errors.js';
import { LogUnreadable } from '../../eventlog/port.js';
import { CouncilError as ServiceError } from '../../client/errors.js';
import { ServiceLost, isAway, keyHint } from '../service-faults.js';
import { EventUnknown } from '../records/record.js';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  noService: 3,
  unknown: 4,
  noData: 5,
  interrupted: 130,
} as const;

/** Exit codes of `council verify`; an error counts as cannotTell. */
export const VERIFIED = { valid: 0, notValid: 1, cannotTell: 2 } as const;

/** Wrong words: one too many, one missing, or one of the wrong form. The usage follows the message. */
export class UsageFault extends CouncilError {
  readonly code = 'cli.usage';
  constructor(message: string) {
    super(message, {});
  }
}

/** An argument of the right form that the command cannot use: a topic, a blueprint, a folder. */
export class ArgumentInvalid extends CouncilError<{ readonly subject: string }> {
  readonly code = 'cli.argument-invalid';
  constructor({ subject, reason }: { readonly subject: string; readonly reason: string }) {
    super(`Cannot use ${subject}: ${reason}`, { subject });
  }
}

/** The command may have changed something, but got no answer or could not show it. */
export class OutcomeUnknown extends CouncilError {
  readonly code = 'cli.outcome-unknown';
  constructor(what: string, cause: Error) {
    super(`${what}: ${cause.message}`, {}, { cause });
  }
}

/** Refusals of a service that mean a wrong request, or a wrong key. */
const USAGE_STATUS: readonly (number | null)[] = [400, 401, 403, 413, 422];
/** Exit codes by class of error; a missing key counts as wrong usage. */
const CODES: readonly (readonly [code: number, kinds: readonly (abstract new (...given: never) => Error)[]])[] = [
  [EXIT.usage, [UsageFault, ArgumentInvalid, ConfigInvalid, KeyRefused, KeyTaken, TooManyKeys]],
  [EXIT.unknown, [RunUnknown, RunErased, EventUnknown, KeyUnknown]],
  [EXIT.noData, [DataDirHeld, LogUnreadable]],
  [EXIT.noService, [ServiceLost, LogUnavailable]],
];

export function exitOfError(error: unknown): number {
  const [code] = CODES.find(([, kinds]) => kinds.some((kind) => error instanceof kind)) ?? [];
  if (code !== undefined) return code;
  if (isAway(error)) return EXIT.noService;
  const isRefused = error instanceof ServiceError && USAGE_STATUS.includes(error.status);
  return isRefused ? EXIT.usage : EXIT.failed;
}

export interface MessageOptions {
  /** The usage of the command. */
  readonly usage: string;
  /** Whether the command can call a service instead of reading DATA_DIR. */
  readonly takesUrl: boolean;
}

/** What the user sees of an error. The stack is shown only of errors that the program does not expect. */
export function messageOf(error: unknown, { usage, takesUrl }: MessageOptions): string {
  if (error instanceof UsageFault) return `${error.message}\n\n${usage}`;
  if (error instanceof ServiceError) return error.message + keyHint(error);
  if (!(error instanceof CouncilError)) return error instanceof Error ? (error.stack ?? '') : String(error);
  const isAboutFolder = error instanceof DataDirHeld || error instanceof LogUnreadable;
  return isAboutFolder && takesUrl
    ? `${error.message}; ask a running service with --url http://HOST:PORT`
    : error.message;
}
