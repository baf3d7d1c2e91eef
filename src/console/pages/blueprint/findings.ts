/** What is wrong with a draft, as the service and this editor find it. */
import type { TaggedBlueprint } from '../../../client/blueprints.js';
import { InvalidError } from '../../../client/errors.js';
import type {
  BlueprintCreate,
  BlueprintValidation,
  BlueprintWarning,
  FieldError,
  NodeRole,
} from '../../../generated/schemas.js';
import { conditionFault } from '../../record/drawn-graph.js';
import { inPageWords, withLabels } from '../../record/page-words.js';
import type { Draft, NodeOrEdge } from './draft.js';
import { bodyOf, isRecord } from './draft.js';

/** An error or a warning, with its node or edge. */
export interface Finding extends BlueprintWarning {
  /** Or null for the whole blueprint. */
  readonly part: NodeOrEdge | null;
}

type Roles = ReadonlyMap<string, NodeRole>;

/** The service's check of a draft. */
export interface Answer {
  readonly draft: Draft;
  /** Whether a run would start, or null before a check. */
  readonly valid: boolean | null;
  readonly warnings: readonly BlueprintWarning[];
  readonly roles: Roles;
}

export const NO_ANSWER = { valid: null, warnings: [], roles: new Map<string, NodeRole>() };

/** Most requests of one check. */
const MOST_REQUESTS = 10;

/**
 * The service's check of a draft. Because the service reports only the first field of a wrong form, a refused draft is
 * checked again without that field, so that all such fields are found.
 *
 * @param roles the roles to keep if the service refuses the draft
 * @throws {InvalidError} without the field, or any error other than a refusal
 */
export async function checked(
  draft: Draft,
  ask: (body: BlueprintCreate) => Promise<BlueprintValidation>,
  roles: Roles,
): Promise<Answer> {
  let body = bodyOf(draft);
  const found: BlueprintWarning[] = [];
  for (let asked = 0; asked < MOST_REQUESTS; asked += 1) {
    try {
      const answer = await ask(body);
      return found.length > 0 ? refused(draft, found, roles) : { draft, ...answer, roles: rolesOf(answer) };
    } catch (error) {
      if (!(error instanceof InvalidError) || error.errors.length === 0) throw error;
      // A field that an earlier round has left out may be missing now.
      const errors = asked === 0 ? error.errors : error.errors.filter(({ type }) => type !== 'missing');
      if (errors.length === 0) break;
      found.push(...errors.map(({ loc, msg }) => ({ path: pathOf(loc.slice(1)), message: msg })));
      body = errors.reduce((rest, { loc }) => without(rest, fieldAt(loc.slice(1))), body);
    }
  }
  return refused(draft, found, roles);
}

/** The answer for a draft that the service refuses. */
export function refused(draft: Draft, warnings: readonly BlueprintWarning[], roles: Roles): Answer {
  return { draft, valid: false, warnings, roles };
}

type FieldPath = FieldError['loc'];

/** The field that holds a place: the list of an item. */
function fieldAt(place: FieldPath): FieldPath {
  return place.slice(0, place.findLastIndex((part) => typeof part === 'string') + 1);
}

/** A copy without the field at a place. */
function without<T>(value: T, [first, ...rest]: FieldPath): T;
function without(value: unknown, [first, ...rest]: FieldPath): unknown {
  if (Array.isArray(value)) return value.map((each: unknown, at) => (at === first ? without(each, rest) : each));
  if (!isRecord(value) || first === undefined) return value;
  const kept = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (name !== first) return [[name, each]];
    return rest.length === 0 ? [] : [[name, without(each, rest)]];
  });
  return Object.fromEntries<unknown>(kept);
}

export function rolesOf({ roles }: Pick<TaggedBlueprint, 'roles'>): Roles {
  return new Map(roles.map(({ node, role }) => [node, role]));
}

/** Findings of a draft: conditions are checked here, the rest comes from the service's last check if indexes still match. */
export function findingsOf(draft: Draft, answer: Answer): readonly Finding[] {
  const { nodes, edges } = answer.draft;
  const isStale = nodes.length !== draft.nodes.length || edges.length !== draft.edges.length;
  const own = draft.edges.flatMap(({ type, condition }, at): Finding[] => {
    const message = type === 'conditional' ? conditionFault(condition ?? '') : null;
    return message === null ? [] : [{ path: `edges[${at}].condition`, message, part: { kind: 'edge', at } }];
  });
  const hasOwn = new Set(own.map(({ path }) => path));
  const ofService = isStale ? [] : answer.warnings.filter((each) => !isOfCondition(each) || answer.draft === draft);
  const names = { node: (id: string) => nodes.find((each) => each.id === id)?.label ?? id };
  const shown = ofService.filter(({ path }) => !hasOwn.has(path));
  return [
    ...own,
    ...shown.map(({ path, message }) => {
      return { path, message: withLabels(inPageWords(message), names), part: partAt(path) };
    }),
  ];
}

function isOfCondition({ path }: BlueprintWarning): boolean {
  return path.endsWith('.condition');
}

/** The node or edge of a path such as `edges[2].target`. */
function partAt(path: string): NodeOrEdge | null {
  const [, list, at] = /^(node|edge)s\[(\d+)\]/.exec(path) ?? [];
  return list === 'node' || list === 'edge' ? { kind: list, at: Number(at) } : null;
}

/** A location in a body as a path, such as `nodes[0].label`. */
function pathOf(place: readonly (string | number)[]): string {
  return place
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');
}
