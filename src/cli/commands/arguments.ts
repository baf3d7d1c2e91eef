/** What the arguments of all commands share. */
import { CouncilError } from '../../errors.js';
import { plainUrl } from '../../config-values.js';

/** An argument that is not accepted: one too many, one missing, or malformed. */
export class UsageFault extends CouncilError {
  readonly code = 'cli.usage';
  constructor(message: string) {
    super(message, {});
  }
}

/** Parses the words after a command. @throws {UsageFault} for whatever `parse` throws */
export function orUsageFault<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageFault(error instanceof Error ? error.message : String(error));
  }
}

/** The address given as `--url`, without trailing slash. @throws {UsageFault} */
export function serviceUrl(text: string): string {
  const url = plainUrl(text);
  if (url === null)
    throw new UsageFault('--url takes an http or https address without credentials, query and fragment');
  return url;
}
