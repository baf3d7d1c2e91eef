/** Validates a council's graph: issues with their places. Faults keep it from being run, warnings do not. */
import { jsonBytes } from '../graph/limits.js';
import { ambiguousBackEdges } from '../graph/plan.js';
import { cycleOf, edgesBySource, reachableFrom, reachability } from '../graph/traversal.js';
import type { BlueprintWarning, SavedEdge, SavedNode } from '../generated/schemas.js';
import { ConditionInvalid, parseCondition } from '../graph/condition.js';
import { elementAt, present } from '../system/element.js';
import { VERDICTS } from '../council/roles.js';

/** A council's graph, as it is saved. */
export interface CouncilGraph {
  readonly nodes: readonly SavedNode[];
  readonly edges: readonly SavedEdge[];
}

export interface GraphIssue extends BlueprintWarning {
  /** Whether a run cannot start. Other issues are warnings about what is hardly intended. */
  readonly isFault: boolean;
  /** The node it is about, when it is about one. */
  readonly node: string | null;
}

/** Most warnings kept in a record, and most bytes of them as JSON: it must fit one append. */
const MAX_WARNINGS = 100;
const MAX_WARNINGS_BYTES = 32 * 1024;

/** All issues of a graph, faults first. */
export function inspectGraph(graph: CouncilGraph): readonly GraphIssue[] {
  if (graph.nodes.length === 0) return [fault('nodes', 'The council has no nodes, so none can be reached')];
  const issues = [...edgeIssues(graph), ...entryIssues(graph), ...cycleIssues(graph), ...directionIssues(graph)];
  return [...issues.filter(({ isFault }) => isFault), ...issues.filter(({ isFault }) => !isFault)];
}

/** Issues as clients see them, no more than a record can hold. */
export function warningsOf(issues: readonly GraphIssue[]): BlueprintWarning[] {
  const warnings: BlueprintWarning[] = [];
  let bytes = 0;
  for (const { path, message } of issues) {
    bytes += jsonBytes(path) + jsonBytes(message);
    if (warnings.length === MAX_WARNINGS || bytes > MAX_WARNINGS_BYTES) break;
    warnings.push({ path, message });
  }
  const more = issues.length - warnings.length;
  return more === 0 ? warnings : [...warnings, { path: '', message: `And ${more} more` }];
}

/** Index of the node that runs first: the first without incoming edges, else the first. */
export function entryOf({ nodes, edges }: CouncilGraph): number {
  const targets = new Set(edges.map(({ target }) => target));
  return Math.max(
    0,
    nodes.findIndex(({ id }) => !targets.has(id)),
  );
}

function edgeIssues({ nodes, edges }: CouncilGraph): readonly GraphIssue[] {
  const ids = new Set(nodes.map(({ id }) => id));
  return edges.flatMap((edge, index) => {
    const missing = (['source', 'target'] as const).filter((end) => !ids.has(edge[end]));
    const ends = missing.map((end) => {
      const verb = end === 'source' ? 'comes from' : 'leads to';
      return fault(`edges[${index}].${end}`, `Edge ${named(edge.id)} ${verb} ${named(edge[end])}, which is no node`);
    });
    return [...ends, ...conditionIssues(edge, `edges[${index}].condition`)];
  });
}

function conditionIssues({ id, type, condition }: SavedEdge, path: string): readonly GraphIssue[] {
  const edge = `Edge ${named(id)}`;
  if (type === 'linear') {
    return condition === null
      ? []
      : [warning(path, `${edge} is linear, not conditional: its condition is not looked at`)];
  }
  if (condition === null) return [fault(path, `${edge} is conditional and has no condition`)];
  try {
    const { word } = parseCondition(condition);
    if (word === null || VERDICTS.includes(word)) return [];
    return [
      warning(path, `${edge} waits for the route ${named(word)}, which no critic gives: only approve and rework`),
    ];
  } catch (error) {
    if (!(error instanceof ConditionInvalid)) throw error;
    const { position, reason } = error.data;
    return [fault(path, `The condition of edge ${named(id)} cannot be read at position ${position}: ${reason}`)];
  }
}

/** Nodes that no run reaches. */
function entryIssues(graph: CouncilGraph): readonly GraphIssue[] {
  const { nodes, edges } = graph;
  const entry = elementAt(nodes, entryOf(graph));
  const reached = reachableFrom(entry.id, edgesBySource(edges)).add(entry.id);
  const targets = new Set(edges.map(({ target }) => target));
  return nodes.flatMap(({ id }, index) => {
    if (reached.has(id)) return [];
    const why = targets.has(id)
      ? `cannot be reached from the entry ${named(entry.id)}`
      : `has no incoming edge, as the entry ${named(entry.id)} before it: it is never run`;
    return [warning(`nodes[${index}]`, `Node ${named(id)} ${why}`, id)];
  });
}

/** Cycles that no edge leaves, and cycles of linear edges, which a run both leaves and repeats each time. */
function cycleIssues({ nodes, edges }: CouncilGraph): readonly GraphIssue[] {
  const ids = new Set(nodes.map(({ id }) => id));
  const inside = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  const choosing = new Set(inside.filter(({ type }) => type === 'conditional').map(({ source }) => source));
  const all = reachability(inside);
  const forced = reachability(inside.filter(({ source }) => !choosing.has(source)));
  const issues: GraphIssue[] = [];
  const reported = new Set<string>();
  nodes.forEach(({ id }, index) => {
    if (reported.has(id)) return;
    const cycle = cycleOf(id, all);
    const isTrap =
      cycle !== null &&
      [...cycle].every((each) =>
        present(all.forward.get(each), 'edge of a cycle').every(({ target }) => cycle.has(target)),
      );
    const round = isTrap ? cycle : cycleOf(id, forced);
    if (round === null) return;
    for (const each of round) reported.add(each);
    const names = [...round].slice(0, 5).map(named).join(', ') + (round.size > 5 ? ' and others' : '');
    const path = `nodes[${index}]`;
    if (isTrap) issues.push(fault(path, `Nothing leads out of the cycle of ${names}`, id));
    else
      issues.push(warning(path, `The cycle of ${names} has linear edges only: it goes on until a run is stopped`, id));
  });
  return issues;
}

/** Cycles where only the order of the nodes decides which edge leads back, and so who waits for whom: one issue each. */
function directionIssues(graph: CouncilGraph): readonly GraphIssue[] {
  const { nodes } = graph;
  const ids = new Set(nodes.map(({ id }) => id));
  const edges = graph.edges
    .map(({ id, source, target, type, condition }, index) => {
      return { id, source, target, index, condition: type === 'conditional' ? condition : null };
    })
    .filter(({ source, target }) => ids.has(source) && ids.has(target));
  const ways = reachability(edges);
  const reported = new Set<string>();
  return ambiguousBackEdges({ entry: elementAt(nodes, entryOf(graph)).id, nodes, edges }).flatMap(
    ({ id, target, index }) => {
      if (reported.has(target)) return [];
      cycleOf(target, ways)?.forEach((each) => reported.add(each));
      const cycle = `a cycle that is entered at ${named(target)} and elsewhere`;
      return [
        warning(`edges[${index}]`, `Edge ${named(id)} leads back in ${cycle}, by the order of the nodes alone`, target),
      ];
    },
  );
}

function fault(path: string, message: string, node: string | null = null): GraphIssue {
  return { path, message, isFault: true, node };
}

/** An issue that keeps no run from starting. */
export function warning(path: string, message: string, node: string | null = null): GraphIssue {
  return { path, message, isFault: false, node };
}

/** An id in quotes; a long one is cut, because ids of edges may have any length. */
function named(id: string): string {
  const characters = [...id.slice(0, 300)];
  return characters.length <= 128 ? `"${id}"` : `"${characters.slice(0, 127).join('')}…"`;
}
