/** Checks the topic, the options and the blueprint of `council run` by the rules of the service, before anything is opened or sent. */
import { readFileSync } from 'node:fs';
import { memberIssues } from '../../blueprint/members.js';
import { inspectGraph, warningsOf } from '../../blueprint/validate.js';
import { waysOut } from '../../blueprint/ways-out.js';
import { councilOf } from '../../blueprint/record.js';
import type { BlueprintCreate, BlueprintWarning, Budget } from '../../generated/schemas.js';
import type { Matter } from '../../http/matter.js';
import { absentFieldsOf, parseJson } from '../../api/json-body.js';
import { BODY_LIMITS, assertRules, validated } from '../../api/validation.js';
import { RequestRefused } from '../../api/problems.js';
import type { SchemaRegistry } from '../../api/schemas.js';
import { fieldOf, reasonOf } from '../../system/untrusted.js';
import type { RunOptions } from './driver.js';
import { ArgumentInvalid } from './exit-codes.js';

export interface RunArguments {
  readonly topic: string;
  /** The file of a blueprint, or null for the built-in council. */
  readonly blueprintFile: string | null;
  readonly isGodMode: boolean;
  readonly budget: Budget | null;
  readonly matter: Matter;
}

/** The run to start, and warnings about its blueprint. @throws {ArgumentInvalid} names the argument and the place */
export function readRunRequest(
  { topic, blueprintFile, isGodMode, budget, matter }: RunArguments,
  schemas: SchemaRegistry,
): { readonly request: RunOptions; readonly warnings: readonly BlueprintWarning[] } {
  const isRequest = schemas.validator('run-request.json');
  naming('the topic', () => validated(isRequest, { input_topic: topic }, 'body'));
  naming('the options', () => validated(isRequest, { input_topic: topic, ...matter }, 'body'));
  if (blueprintFile === null) return { request: { topic, isGodMode, budget, matter, blueprint: null }, warnings: [] };
  const subject = `blueprint ${blueprintFile}`;
  const bytes = contentOf(blueprintFile, subject);
  const blueprint = naming(subject, () => readBlueprint(bytes, schemas));
  const council = councilOf(blueprint);
  const issues = [...inspectGraph(council), ...memberIssues(council), ...waysOut(council)];
  const fault = issues.find(({ isFault }) => isFault);
  if (fault !== undefined) throw new ArgumentInvalid({ subject, reason: fault.message });
  const pauses = isGodMode || council.god_mode === 'always';
  return { request: { topic, isGodMode: pauses, budget, matter, blueprint }, warnings: warningsOf(issues) };
}

/** The bytes of a file. @param subject names the file in errors @throws {ArgumentInvalid} */
export function contentOf(file: string, subject: string, maxBytes = BODY_LIMITS.maxBytes): Buffer {
  let bytes;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const reason = fieldOf(error, 'code') === 'ENOENT' ? 'there is no such file' : reasonOf(error);
    throw new ArgumentInvalid({ subject, reason });
  }
  if (bytes.length <= maxBytes) return bytes;
  throw new ArgumentInvalid({ subject, reason: `it has more than ${maxBytes} bytes` });
}

function readBlueprint(bytes: Buffer, schemas: SchemaRegistry): BlueprintCreate {
  const value = absentFieldsOf(schemas, 'blueprint-create.json').withoutNulls(parseJson(bytes, BODY_LIMITS.maxDepth));
  const blueprint = validated(schemas.validator('blueprint-create.json'), value, 'body');
  assertRules(blueprint);
  return blueprint;
}

/** Runs a check of the REST API. @throws {ArgumentInvalid} names the argument that the check refuses */
export function naming<T>(subject: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw named(subject, error);
  }
}

/** The error of a check of the REST API as one that names the argument, in place of the body; other errors stay. */
export function named(subject: string, error: unknown): unknown {
  if (!(error instanceof RequestRefused)) return error;
  const rules = (error.data.errors ?? []).map(({ loc, msg }) =>
    [loc.slice(1).join('.'), msg.replace(/^Body /, 'it ')].filter(Boolean).join(': '),
  );
  return new ArgumentInvalid({ subject, reason: rules.length === 0 ? error.message : rules.join('; ') });
}
