/** What the commands that show one answer of a running service share. A command declares only its read and its text. */
import type { CouncilClient, Run } from '../../client/client.js';
import { readCouncilKey } from '../../config.js';
import { nodeSystem } from '../../system/system.js';
import { fieldOf } from '../../system/untrusted.js';
import type { Styler } from '../terminal/printer.js';
import type { Command, CommandProcess, Options, Words } from './command.js';
import { UsageFault } from './exit-codes.js';
import { JSON_OPTION, RECORD_OPTIONS, onRecord, runsIn, show } from './record-command.js';

/** Options of each of these commands. */
export const SERVICE_OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION } as const;

/** The end of their usages. */
export const AT_SERVICE = usageEnd('');
/** The same of commands on a run. */
export const RUN_AT_SERVICE = usageEnd(' 4 no such run,');

function usageEnd(moreCodes: string): string {
  return `  --json       print the answer of the service as JSON
  --url URL    the service, for example http://127.0.0.1:8000
  --help       show this text

Exit code: 0 done, 1 failed, 2 wrong usage or a refusal, 3 no service at URL,${moreCodes} 130 after Ctrl-C.`;
}

interface ReadSpec<O extends Options, T extends object, From> {
  readonly usage: string;
  /** SERVICE_OPTIONS, and those of the command. */
  readonly options: O;
  readonly read: (
    from: From,
    call: { readonly values: Words<O>['values']; readonly signal: AbortSignal },
  ) => Promise<T>;
  /** The answer for a person. */
  readonly textOf: (found: T, style: Styler) => string;
}

/** A command without words, such as `council about`. */
export function serviceRead<const O extends Options, T extends object>(spec: ReadSpec<O, T, CouncilClient>): Command {
  return (words, here) =>
    onRecord(words, here, spec, async ({ values, positionals }, deps) => {
      if (positionals.length > 0) throw new UsageFault('Too many words: none accepted');
      const council = await clientAt(deps.url, here);
      const found = await spec.read(council, { values, signal: here.signal });
      return await show(fieldOf(values, 'json') === true ? found : spec.textOf(found, deps.style), deps);
    });
}

/** A command whose word is the id of a run, such as `council next`. */
export function runRead<const O extends Options, T extends object>(spec: ReadSpec<O, T, Run>): Command {
  return (words, here) =>
    onRecord(words, here, spec, async ({ values, positionals }, deps) => {
      const [runId] = runsIn(positionals);
      const council = await clientAt(deps.url, here);
      const { readOfRun } = await import('../records/service-records.js');
      const found = await readOfRun(council, runId, (run) => spec.read(run, { values, signal: here.signal }));
      return await show(fieldOf(values, 'json') === true ? found : spec.textOf(found, deps.style), deps);
    });
}

/** @throws {UsageFault} without an address */
export async function clientAt(url: string | null, { env }: Pick<CommandProcess, 'env'>): Promise<CouncilClient> {
  if (url === null) throw new UsageFault('--url is missing');
  const { serviceClient } = await import('../service-client.js');
  return serviceClient(url, { key: readCouncilKey(env), system: nodeSystem() });
}
