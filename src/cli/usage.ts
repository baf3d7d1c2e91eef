/** How the command is called: its arguments, and what is said to those who call it another way. */
import { parseArgs } from 'node:util';
import { CouncilError } from '../errors.js';
import { plainUrl } from '../setting-values.js';

export const USAGE = `Usage: council run "<topic>" [options]

Runs a council on a topic. Progress goes to standard error, the final draft alone to standard output.

  --blueprint FILE  a council of your own, as JSON; it is not saved
  --god             pause before each step and ask; needs --blueprint. Answers: approve, reject or edit (the draft, in
                    $EDITOR), in full or begun: a, r, e
  --json            print the run's result as one JSON object instead of the draft
  --url URL         drive a running service, for example http://127.0.0.1:8000, instead of running here
  --help            this text

Without --url it runs in this process on DATA_DIR, with the service's settings from the environment.
Exit code: 0 completed, 1 failed, cancelled or left undecided, 2 wrong usage.`;

/** An argument too many, too few, or of a form that is not taken. */
export class UsageFault extends CouncilError {
  readonly code = 'cli.usage';
  constructor(message: string) {
    super(message, {});
  }
}

export interface RunArguments {
  readonly topic: string;
  readonly blueprintFile: string | null;
  readonly isGodMode: boolean;
  readonly isJson: boolean;
  /** Without trailing slash; null: run here. */
  readonly url: string | null;
}

/** Reads what follows `council run`; null when only help is wanted. @throws {UsageFault} */
export function readArguments(words: readonly string[]): RunArguments | null {
  const { values, positionals } = parsed(words);
  if (values.help) return null;
  const [topic, ...more] = positionals;
  if (topic === undefined) throw new UsageFault('A topic is missing');
  if (more.length > 0) throw new UsageFault(`One topic is taken, in quotes; ${positionals.length} words were given`);
  const blueprintFile = values.blueprint ?? null;
  if (values.god && blueprintFile === null) {
    throw new UsageFault('--god needs --blueprint: the built-in council does not pause');
  }
  const url = values.url === undefined ? null : serviceUrl(values.url);
  return { topic, blueprintFile, isGodMode: values.god, isJson: values.json, url };
}

function parsed(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        blueprint: { type: 'string' },
        god: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        url: { type: 'string' },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    });
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
