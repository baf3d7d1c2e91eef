/** Validates a council's graph. Faults prevent a run, warnings do not. */
import { jsonBytes } from '../graph/limits.js';
import { ambiguousBackEdges } from '../graph/plan.js';
import { cycleOf, reachability, reachedFrom } from '../graph/traversal.js';
import type { BlueprintWarning, SavedEdge, SavedNode } from '../generated/schemas.js';
import { ConditionInvalid, parseCondition } from '../graph/condition.js';
import { elementAt, present } from '../system/element.js';
import { VERDICTS } from '../council/roles.js';

/** A council's graph as saved. */
export interface CouncilGraph {
  readonly nodes: readonly SavedNode[];
  readonly edges: readonly SavedEdge[];
  /** Id of the node where a run begins, if the council names one. */
  readonly entry?: string | undefined;
}

export interface GraphIssue extends BlueprintWarning {
  /** Whether it prevents a run. Other issues are warnings. */
  readonly isFault: boolean;
  /** The node of the issue, or null. */
  readonly node: string | null;
}

/** Most warnings in a record, and most bytes of them as JSON: the record must fit into an append. */
const MAX_WARNINGS = 100;
const MAX_WARNINGS_BYTES = 32 * 1024;

/** All issues of a graph, faults first. */
export function inspectGraph(graph: CouncilGraph): readonly GraphIssue[] {
  if (graph.nodes.length === 0) return [fault('nodes', 'The council has no nodes')];
  const issues = [
    ...formatIssues(graph),
    ...councilIssues(graph),
    ...edgeIssues(graph),
    ...entryIssues(graph),
    ...cycleIssues(graph),
    ...directionIssues(graph),
  ];
  return [...issues.filter(({ isFault }) => isFault), ...issues.filter(({ isFault }) => !isFault)];
}

/** Issues as clients see them, within the limits of a record. */
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

/** Index of the entry: the node that the council names, else the first without incoming edges, else the first. */
export function entryOf({ nodes, edges, entry }: CouncilGraph): number {
  const named = nodes.findIndex(({ id }) => id === entry);
  if (named >= 0) return named;
  const targets = new Set(edges.map(({ target }) => target));
  return Math.max(
    0,
    nodes.findIndex(({ id }) => !targets.has(id)),
  );
}

/** Formats without the schema that they format by. */
function formatIssues({ nodes }: CouncilGraph): readonly GraphIssue[] {
  return nodes.flatMap(({ id, type, schema }, index) => {
    if (type !== 'format' || schema !== undefined) return [];
    return [fault(`nodes[${index}].schema`, `The format ${quotedId(id)} has no schema`, id)];
  });
}

/** Councils that name no council. */
function councilIssues({ nodes }: CouncilGraph): readonly GraphIssue[] {
  return nodes.flatMap(({ id, type, council }, index) => {
    if (type !== 'council' || council !== undefined) return [];
    return [fault(`nodes[${index}].council`, `The node ${quotedId(id)} names no council to run`, id)];
  });
}

function edgeIssues({ nodes, edges }: CouncilGraph): readonly GraphIssue[] {
  const ids = new Set(nodes.map(({ id }) => id));
  return edges.flatMap((edge, index) => {
    const missing = (['source', 'target'] as const).filter((end) => !ids.has(edge[end]));
    const ends = missing.map((end) => {
      const verb = end === 'source' ? 'comes from' : 'leads to';
      return fault(
        `edges[${index}].${end}`,
        `Edge ${quotedId(edge.id)} ${verb} ${quotedId(edge[end])}, which is no node`,
      );
    });
    return [...ends, ...conditionIssues(edge, `edges[${index}].condition`)];
  });
}

function conditionIssues({ id, type, condition }: SavedEdge, path: string): readonly GraphIssue[] {
  const edge = `Edge ${quotedId(id)}`;
  if (type === 'linear') {
    return condition === null ? [] : [warning(path, `${edge} is linear, not conditional: its condition is ignored`)];
  }
  if (condition === null) return [fault(path, `${edge} is conditional and has no condition`)];
  try {
    const { word } = parseCondition(condition);
    if (word === null || VERDICTS.includes(word)) return [];
    return [warning(path, `${edge} has the condition ${quotedId(word)}, but critics route only approve or rework`)];
  } catch (error) {
    if (!(error instanceof ConditionInvalid)) throw error;
    const { position, reason } = error.data;
    return [fault(path, `The condition of edge ${quotedId(id)} cannot be read at position ${position}: ${reason}`)];
  }
}

/** Nodes that no run reaches. */
function entryIssues(graph: CouncilGraph): readonly GraphIssue[] {
  const { nodes, edges } = graph;
  const entry = elementAt(nodes, entryOf(graph));
  const unknown =
    graph.entry === undefined || graph.entry === entry.id
      ? []
      : [fault('entry', `The entry ${quotedId(graph.entry)} is no node`)];
  const reached = reachedFrom(entry.id, edges);
  const targets = new Set(edges.map(({ target }) => target));
  const unreached = nodes.flatMap(({ id }, index) => {
    if (reached.has(id)) return [];
    const why = targets.has(id)
      ? `cannot be reached from the entry ${quotedId(entry.id)}`
      : `has no incoming edge and is not the entry ${quotedId(entry.id)}: no run reaches it`;
    return [warning(`nodes[${index}]`, `Node ${quotedId(id)} ${why}`, id)];
  });
  return [...unknown, ...unreached];
}

/** Cycles without a way out, and cycles of linear edges, which a run repeats until its limit. */
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
    const names = [...round].slice(0, 5).map(quotedId).join(', ') + (round.size > 5 ? ' and others' : '');
    const path = `nodes[${index}]`;
    if (isTrap) issues.push(fault(path, `No edge leads out of the cycle of ${names}`, id));
    else
      issues.push(warning(path, `The cycle of ${names} has only linear edges: a run repeats it until its limit`, id));
  });
  return issues;
}

/** Cycles in which only the order of the nodes decides which edge leads back: one issue each. */
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
      const cycle = `a cycle that is entered at ${quotedId(target)} and elsewhere`;
      return [
        warning(
          `edges[${index}]`,
          `Edge ${quotedId(id)} leads back in ${cycle}, by the order of the nodes alone`,
          target,
        ),
      ];
    },
  );
}

function fault(path: string, message: string, node: string | null = null): GraphIssue {
  return { path, message, isFault: true, node };
}

/** An issue that does not prevent a run. */
export function warning(path: string, message: string, node: string | null = null): GraphIssue {
  return { path, message, isFault: false, node };
}

/** An id in quotes. A long one is cut, because ids of edges have no limit. */
export function quotedId(id: string): string {
  const characters = [...id.slice(0, 300)];
  return characters.length <= 128 ? `"${id}"` : `"${characters.slice(0, 127).join('')}…"`;
}
