/** What is asked for, read from files and checked by the service's own rules before anything is opened or sent. */
import { readFileSync } from 'node:fs';
import { compileBlueprint } from '../blueprint/compile.js';
import { inspect, warningsOf } from '../blueprint/inspect.js';
import { councilOf } from '../blueprint/record.js';
import type { BlueprintCreate } from '../generated/schemas.js';
import { assertRules, BODY_LIMITS } from '../http/blueprint-rules.js';
import { parseJson } from '../http/json-text.js';
import { RequestRefused } from '../http/problems.js';
import type { SchemaShelf } from '../http/schema.js';
import { validated } from '../http/validate.js';
import type { RunOrder } from './driver.js';
import type { RunArguments } from './usage.js';
import { UsageFault } from './usage.js';

/** The order of a run, and what is odd with its blueprint. @throws {UsageFault} naming the argument or the place */
export function readOrder(
  { topic, blueprintFile, isGodMode }: RunArguments,
  schemas: SchemaShelf,
): { readonly order: RunOrder; readonly warnings: readonly string[] } {
  named('the topic', () => validated(schemas.validator('run-request.json'), { input_topic: topic }, 'body'));
  if (blueprintFile === null) return { order: { topic, isGodMode, blueprint: null }, warnings: [] };
  const blueprint = named(`blueprint ${blueprintFile}`, () => readBlueprint(blueprintFile, schemas));
  const council = councilOf(blueprint);
  const compiled = compileBlueprint({ id: blueprint.id ?? blueprint.name, ...council }, NO_DEFAULTS);
  if (!compiled.isRunnable) throw new UsageFault(compiled.failure.error);
  const warnings = warningsOf(inspect(council)).map(({ path, message }) => `${path}: ${message}`);
  return { order: { topic, isGodMode, blueprint }, warnings };
}

/** Only whether it can be run is asked here; the driver compiles it with the settings of where it runs. */
const NO_DEFAULTS = { timeoutMs: 1, maxAttempts: 1 };

function readBlueprint(file: string, schemas: SchemaShelf): BlueprintCreate {
  const bytes = contentOf(file);
  if (bytes.length > BODY_LIMITS.maxBytes) throw new UsageFault(`at most ${BODY_LIMITS.maxBytes} bytes are taken`);
  const value = parseJson(bytes, BODY_LIMITS.maxDepth);
  const blueprint = validated(schemas.validator('blueprint-create.json', 'first'), value, 'body');
  assertRules(blueprint);
  return blueprint;
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageFault(error instanceof Error ? error.message : String(error));
  }
}

/** Runs a check; its refusal becomes a usage fault that names what was checked. */
function named<T>(subject: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof UsageFault) throw new UsageFault(`Cannot use ${subject}: ${error.message}`);
    if (!(error instanceof RequestRefused)) throw error;
    const rules = (error.data.errors ?? []).map(({ loc, msg }) =>
      [loc.slice(1).join('.'), msg].filter(Boolean).join(': '),
    );
    throw new UsageFault(`Cannot use ${subject}: ${rules.length === 0 ? error.message : rules.join('; ')}`);
  }
}
