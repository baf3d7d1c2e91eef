/** What a run works on and gives, as clients send it: material, documents and the schema of its output. */
import { innerCouncils } from '../blueprint/councils.js';
import { CouncilNestingRefused } from '../blueprint/errors.js';
import { brokenRules } from '../api/problems.js';
import type { BlueprintNode, FieldError, RunRequest } from '../generated/schemas.js';
import { jsonBytes, utf8Bytes } from '../graph/limits.js';
import type { HttpContext } from './route.js';

/** Most bytes of a material as JSON, in which its event must fit one append: texts and programs have a tenth more than in UTF-8. */
const MAX_ESCAPED_BYTES = 900_000;

export type Matter = Pick<RunRequest, 'material' | 'documents' | 'output_schema'>;

/** What a check of these fields needs of a service, or of a command that works without one. */
export interface MatterDeps extends Pick<HttpContext, 'maxMaterialBytes' | 'schemaChecker' | 'withinDeadline'> {
  readonly documents: Pick<HttpContext['documents'], 'find'>;
  readonly blueprints: Pick<HttpContext['blueprints'], 'find'>;
}

/**
 * Refuses a material that is too large, unknown documents, and a schema that cannot be used.
 *
 * @param at the place of the fields
 * @param saved ids of documents that are not looked for
 * @throws {RequestRefused} 422
 */
export async function assertMatter(
  http: MatterDeps,
  { material = '', documents = [], output_schema: schema }: Matter,
  at: readonly string[],
  saved: readonly string[] = [],
): Promise<void> {
  const errors: FieldError[] = [];
  const limit = brokenLimit(material, http.maxMaterialBytes);
  if (limit !== null) {
    const msg = `Material should have at most ${limit}`;
    errors.push({ loc: [...at, 'material'], msg, type: 'string_too_long' });
  }
  const isKnown = async (id: string): Promise<boolean> =>
    saved.includes(id) || (await http.documents.find(id)) !== null;
  const known = await http.withinDeadline(Promise.all(documents.map(isKnown)));
  for (const [index, is] of known.entries()) {
    if (!is) errors.push({ loc: [...at, 'documents', index], msg: 'No such document', type: 'unknown' });
  }
  const fault = schema === undefined ? null : await http.schemaChecker.faultOf(schema);
  if (fault !== null) errors.push(schemaError([...at, 'output_schema'], fault));
  if (errors.length > 0) throw brokenRules(errors);
}

/** The limit in bytes that a material exceeds, in words, or null. */
export function brokenLimit(material: string, maxBytes: number): string | null {
  if (utf8Bytes(material) > maxBytes) return `${maxBytes} bytes`;
  if (jsonBytes(material) <= MAX_ESCAPED_BYTES) return null;
  return `${MAX_ESCAPED_BYTES} bytes as JSON: it holds many quotes or control characters`;
}

/** A council as clients send it; null removes a field of a saved one. */
interface SentCouncil {
  readonly nodes?: readonly Pick<BlueprintNode, 'id' | 'type' | 'schema' | 'council'>[] | undefined;
  readonly documents?: Matter['documents'] | null;
  readonly output_schema?: Matter['output_schema'] | null;
}

/** What of a saved council counts at its next save. */
interface SavedCouncil {
  readonly id?: string | undefined;
  readonly documents?: readonly string[];
  readonly nodes?: readonly Pick<BlueprintNode, 'council'>[];
}

/**
 * @param saved the council as it is saved, or its id alone: documents and councils that it named and that were deleted since
 *   are no fault
 * @throws {RequestRefused} 422 for unknown documents and councils, for councils that would contain themselves, and for schemas of
 *   the output or of nodes that cannot be used
 */
export async function assertCouncil(http: MatterDeps, council: SentCouncil, saved: SavedCouncil = {}): Promise<void> {
  const { nodes = [], documents, output_schema: schema } = council;
  const matter = { ...(documents && { documents }), ...(schema && { output_schema: schema }) };
  await assertMatter(http, matter, ['body'], saved.documents);
  for (const [index, node] of nodes.entries()) {
    if (node.type !== 'format' || node.schema === undefined) continue;
    const fault = await http.schemaChecker.faultOf(node.schema);
    // The first fault ends the check: each of many hostile schemas takes a second.
    if (fault !== null) throw brokenRules([schemaError(['body', 'nodes', index, 'schema'], fault)]);
  }
  const errors = await councilErrors(http, nodes, saved);
  if (errors.length > 0) throw brokenRules(errors);
}

/** Nodes that run unknown councils, or councils that would contain themselves. */
async function councilErrors(
  { blueprints, withinDeadline }: MatterDeps,
  nodes: NonNullable<SentCouncil['nodes']>,
  { id, nodes: before = [] }: SavedCouncil,
): Promise<readonly FieldError[]> {
  const at = (node: string, msg: string): FieldError => {
    const index = nodes.findIndex((each) => each.id === node);
    return { loc: ['body', 'nodes', index, 'council'], msg, type: 'value_error' };
  };
  try {
    const inner = await withinDeadline(innerCouncils({ id, nodes }, (each) => blueprints.find(each)));
    const known = new Set(before.map(({ council }) => council));
    const missing = nodes.filter((node) => inner.get(node.id) === null && !known.has(node.council));
    return missing.map(({ id: node, council }) => at(node, `No such council: "${council}". Save it before this one`));
  } catch (error) {
    if (error instanceof CouncilNestingRefused) return [at(error.data.node, error.message)];
    throw error;
  }
}

function schemaError(loc: FieldError['loc'], fault: string): FieldError {
  return { loc, msg: `The schema cannot be used: ${fault}`, type: 'value_error' };
}
