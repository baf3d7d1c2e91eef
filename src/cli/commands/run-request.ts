/** The arguments of `council run` and its usage. */
import { parseArgs } from 'node:util';
import { CouncilError } from '../../errors.js';
import { readFileSync } from 'node:fs';
import { inspectGraph, warningsOf } from '../../blueprint/validate.js';
import { councilOf } from '../../blueprint/record.js';
import type { BlueprintCreate } from '../../generated/schemas.js';
import { nullsLeftOut, BODY_LIMITS, assertRules, validated, parseJson } from '../../api/validation.js';
import { RequestRefused } from '../../api/problems.js';
import type { SchemaRegistry } from '../../api/schemas.js';
import { UsageFault, orUsageFault, serviceUrl } from './command.js';
import type { RunOptions } from './driver.js';

export const USAGE = `Usage: council run "<topic>" [options]

Runs a council on a topic. Progress goes to standard error, the final draft alone to standard output.

  --blueprint FILE  a council of your own, as JSON; it is not saved
  --god             pause before each step and ask; needs --blueprint. Answers: approve, reject or edit (the draft, in
                    $EDITOR), in full or begun: a, r, e; what follows is a comment
  --json            print the run's result as one JSON object instead of the draft
  --url URL         drive a running service, for example http://127.0.0.1:8000, instead of running here
  --help            this text

Without --url it runs in this process on DATA_DIR, with the service's settings from the environment.
Exit code: 0 completed, 1 failed, cancelled or left undecided, 2 wrong usage.`;

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
  const { values, positionals } = parseWords(words);
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

function parseWords(words: readonly string[]) {
  return orUsageFault(() =>
    parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        blueprint: { type: 'string' },
        god: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        url: { type: 'string' },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }),
  );
}

// The request, checked by the service's own rules before anything is opened or sent.

/** The topic or the blueprint cannot be taken. */
export class RunRequestInvalid extends CouncilError<{ readonly subject: string }> {
  readonly code = 'cli.order-invalid';
  constructor({ subject, reason }: { readonly subject: string; readonly reason: string }) {
    super(`Cannot use ${subject}: ${reason}`, { subject });
  }
}

/** The run to start, and warnings about its blueprint. @throws {RunRequestInvalid} naming the argument and the place */
export function readRunRequest(
  { topic, blueprintFile, isGodMode }: RunArguments,
  schemas: SchemaRegistry,
): { readonly request: RunOptions; readonly warnings: readonly string[] } {
  naming('the topic', () => validated(schemas.validator('run-request.json'), { input_topic: topic }, 'body'));
  if (blueprintFile === null) return { request: { topic, isGodMode, blueprint: null }, warnings: [] };
  const subject = `blueprint ${blueprintFile}`;
  const bytes = contentOf(blueprintFile, subject);
  const blueprint = naming(subject, () => readBlueprint(bytes, schemas));
  const issues = inspectGraph(councilOf(blueprint));
  const fault = issues.find(({ isFault }) => isFault);
  if (fault !== undefined) throw new RunRequestInvalid({ subject, reason: fault.message });
  const warnings = warningsOf(issues).map(({ path, message }) => `${path}: ${message}`);
  return { request: { topic, isGodMode, blueprint }, warnings };
}

function contentOf(file: string, subject: string): Buffer {
  let bytes;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new RunRequestInvalid({ subject, reason: error instanceof Error ? error.message : String(error) });
  }
  if (bytes.length <= BODY_LIMITS.maxBytes) return bytes;
  throw new RunRequestInvalid({ subject, reason: `at most ${BODY_LIMITS.maxBytes} bytes are taken` });
}

function readBlueprint(bytes: Buffer, schemas: SchemaRegistry): BlueprintCreate {
  const value = nullsLeftOut(schemas, 'blueprint-create.json')(parseJson(bytes, BODY_LIMITS.maxDepth));
  const blueprint = validated(schemas.validator('blueprint-create.json'), value, 'body');
  assertRules(blueprint);
  return blueprint;
}

/** Runs a check of the REST API; its refusal names the argument. */
function naming<T>(subject: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    const rules = (error.data.errors ?? []).map(({ loc, msg }) =>
      [loc.slice(1).join('.'), msg].filter(Boolean).join(': '),
    );
    throw new RunRequestInvalid({ subject, reason: rules.length === 0 ? error.message : rules.join('; ') });
  }
}
