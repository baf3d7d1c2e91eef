/** What the arguments of all commands share. */
import { CouncilError } from '../../errors.js';
import { plainUrl } from '../../config-values.js';

/** An argument too many, too few, or of a form that is not taken. */
export class UsageFault extends CouncilError {
  readonly code = 'cli.usage';
  constructor(message: string) {
    super(message, {});
  }
}

/** What is parsed of the words after a command. @throws {UsageFault} where they are none of its */
export function orUsageFault<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageFault(error instanceof Error ? error.message : String(error));
  }
}

/** An address as `--url` takes it, without trailing slash. @throws {UsageFault} */
export function serviceUrl(text: string): string {
  const url = plainUrl(text);
  if (url === null)
    throw new UsageFault('--url takes an http or https address without credentials, query and fragment');
  return url;
}
