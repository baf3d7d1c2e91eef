/** What is asked for, read from files and checked by the service's own rules before anything is opened or sent. */
import { readFileSync } from 'node:fs';
import { inspect, warningsOf } from '../blueprint/inspect.js';
import { councilOf } from '../blueprint/record.js';
import { CouncilError } from '../errors.js';
import type { BlueprintCreate } from '../generated/schemas.js';
import { nullsLeftOut } from '../http/absent.js';
import { assertRules, BODY_LIMITS } from '../http/blueprint-rules.js';
import { parseJson } from '../http/json-text.js';
import { RequestRefused } from '../http/problems.js';
import type { SchemaShelf } from '../http/schema.js';
import { validated } from '../http/validate.js';
import type { RunOrder } from './driver.js';
import type { RunArguments } from './usage.js';

/** The topic or the blueprint cannot be taken. */
export class OrderInvalid extends CouncilError<{ readonly subject: string }> {
  readonly code = 'cli.order-invalid';
  constructor({ subject, reason }: { readonly subject: string; readonly reason: string }) {
    super(`Cannot use ${subject}: ${reason}`, { subject });
  }
}

/** The order of a run, and what is odd with its blueprint. @throws {OrderInvalid} naming the argument and the place */
export function readOrder(
  { topic, blueprintFile, isGodMode }: RunArguments,
  schemas: SchemaShelf,
): { readonly order: RunOrder; readonly warnings: readonly string[] } {
  named('the topic', () => validated(schemas.validator('run-request.json'), { input_topic: topic }, 'body'));
  if (blueprintFile === null) return { order: { topic, isGodMode, blueprint: null }, warnings: [] };
  const subject = `blueprint ${blueprintFile}`;
  const bytes = contentOf(blueprintFile, subject);
  const blueprint = named(subject, () => readBlueprint(bytes, schemas));
  const findings = inspect(councilOf(blueprint));
  const fault = findings.find(({ isFault }) => isFault);
  if (fault !== undefined) throw new OrderInvalid({ subject, reason: fault.message });
  const warnings = warningsOf(findings).map(({ path, message }) => `${path}: ${message}`);
  return { order: { topic, isGodMode, blueprint }, warnings };
}

function contentOf(file: string, subject: string): Buffer {
  let bytes;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new OrderInvalid({ subject, reason: error instanceof Error ? error.message : String(error) });
  }
  if (bytes.length <= BODY_LIMITS.maxBytes) return bytes;
  throw new OrderInvalid({ subject, reason: `at most ${BODY_LIMITS.maxBytes} bytes are taken` });
}

function readBlueprint(bytes: Buffer, schemas: SchemaShelf): BlueprintCreate {
  const value = nullsLeftOut(schemas, 'blueprint-create.json')(parseJson(bytes, BODY_LIMITS.maxDepth));
  const blueprint = validated(schemas.validator('blueprint-create.json', 'first'), value, 'body');
  assertRules(blueprint);
  return blueprint;
}

/** Runs a check of the REST edge; its refusal names what was checked. */
function named<T>(subject: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    const rules = (error.data.errors ?? []).map(({ loc, msg }) =>
      [loc.slice(1).join('.'), msg].filter(Boolean).join(': '),
    );
    throw new OrderInvalid({ subject, reason: rules.length === 0 ? error.message : rules.join('; ') });
  }
}
