/** The saved councils that the nodes of a council run: found and checked for a save, and frozen for a start. */
import type { Blueprint, FrozenCouncil, SavedNode } from '../generated/schemas.js';
import type { NodeDefaults } from '../graph/limits.js';
import { withOutput } from '../graph/output-node.js';
import type { Compilable, Compiled } from './compile.js';
import { compileBlueprint, notRunnable } from './compile.js';
import { CouncilNestingRefused } from './errors.js';
import type { GraphIssue } from './validate.js';
import { entryOf, quotedId, warning } from './validate.js';

/** How deep councils may stand in one another. */
const MAX_DEPTH = 3;
/** Most councils that the nodes of a council, and of these councils, run. */
const MAX_COUNCILS = 100;

/** A council by its id, or null if there is none. */
export type FindCouncil = (id: string) => Promise<Blueprint | null>;

interface Naming {
  readonly id?: string | undefined;
  readonly nodes: readonly Pick<SavedNode, 'id' | 'type' | 'council' | 'for_each'>[];
}

/** The councils that a council runs by the node that names each; null for one that does not exist. */
export type InnerCouncils = ReadonlyMap<string, InnerCouncil | null>;

interface InnerCouncil {
  readonly blueprint: Blueprint;
  readonly inner: InnerCouncils;
}

/**
 * Finds the councils that the nodes of a council run, and those that they run.
 *
 * @throws {CouncilNestingRefused} a council would contain itself, or they stand too deep or are too many
 */
export async function innerCouncils(council: Naming, find: FindCouncil): Promise<InnerCouncils> {
  let count = 0;
  const foundIn = async ({ nodes }: Naming, path: readonly string[], outermost?: string): Promise<InnerCouncils> => {
    const inner = new Map<string, InnerCouncil | null>();
    for (const { id: node, type, council: id } of nodes) {
      if (type !== 'council' || id === undefined) continue;
      const at = outermost ?? node;
      count += 1;
      if (path.includes(id))
        throw new CouncilNestingRefused({ node: at, reason: `council "${id}" would contain itself` });
      if (path.length > MAX_DEPTH)
        throw new CouncilNestingRefused({ node: at, reason: `councils would stand more than ${MAX_DEPTH} deep` });
      if (count > MAX_COUNCILS)
        throw new CouncilNestingRefused({ node: at, reason: `more than ${MAX_COUNCILS} councils would run` });
      const blueprint = await find(id);
      inner.set(node, blueprint && { blueprint, inner: await foundIn(blueprint, [...path, id], at) });
    }
    return inner;
  };
  return await foundIn(council, [council.id ?? '']);
}

/** A council with the councils of its nodes, as a run records it. */
export function compileWithCouncils(blueprint: Compilable, inner: InnerCouncils, defaults: NodeDefaults): Compiled {
  const frozen = new Map<string, FrozenCouncil>();
  for (const [node, found] of inner) {
    if (found === null)
      return notRunnable(blueprint, { node, message: `The council of node "${node}" does not exist` });
    const { id, name, version, documents, budget, output_schema: schema } = found.blueprint;
    const compiled = compileWithCouncils(found.blueprint, found.inner, defaults);
    if (!compiled.isRunnable) return notRunnable(blueprint, { node, message: compiled.failure.error });
    frozen.set(node, {
      ...{ id, name, version },
      graph: withOutput(compiled.graph, schema),
      ...(documents !== undefined && { documents }),
      ...(budget !== undefined && { budget }),
    });
  }
  return compileBlueprint(blueprint, defaults, frozen);
}

/** The warnings of saved councils by id. */
export type InnerWarnings = ReadonlyMap<string, readonly string[]>;

/** A warning for each node whose council has warnings of its own. */
export function innerIssues({ nodes }: Naming, warnings: InnerWarnings = new Map()): readonly GraphIssue[] {
  return nodes.flatMap(({ id: node, type, council = '' }, at) => {
    const [first, ...others] = type === 'council' ? (warnings.get(council) ?? []) : [];
    if (first === undefined) return [];
    const more = others.length === 0 ? '' : `, and ${others.length} more`;
    return [warning(`nodes[${at}].council`, `Council ${quotedId(council)} has a warning: ${first}${more}`, node)];
  });
}

/** A warning for a first node with `for_each`: no draft reaches it, so it has no item. */
export function firstNodeIssues(council: Naming & Parameters<typeof entryOf>[0]): readonly GraphIssue[] {
  const at = entryOf(council);
  const node = council.nodes[at];
  const isFirst = !council.edges.some(({ target }) => target === node?.id);
  if (node?.type !== 'council' || node.for_each === undefined || !isFirst) return [];
  const message = `Node ${quotedId(node.id)} has no items, because no draft reaches a first node: let a node before it write them`;
  return [warning(`nodes[${at}].for_each`, message, node.id)];
}

/** Whether a council or one that it runs pauses before each node of every run. */
export function alwaysPauses({ god_mode: mode }: Pick<Blueprint, 'god_mode'>, inner: InnerCouncils): boolean {
  return (
    mode === 'always' || [...inner.values()].some((each) => each !== null && alwaysPauses(each.blueprint, each.inner))
  );
}
