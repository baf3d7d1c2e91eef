/** The nodes and edges of a graph on the page. */
import type { NodeRole } from '../../generated/schemas.js';
import type { NodeState } from '../record/graph.js';
import type { Point } from '../record/placement.js';

export interface GraphNodeShown {
  readonly id: string;
  readonly label: string;
  /** Text under its label, such as its role. */
  readonly about?: string;
  /** Default: idle. */
  readonly state?: NodeState;
  /** Number of finished executions; shown from 2. */
  readonly times?: number;
  /** `mark`: a pause or the end. */
  readonly kind?: NodeRole | 'mark';
  /** Why it is invalid, or null. */
  readonly fault?: string | null;
  /** Its upper left corner. If all nodes have one, the graph is not laid out. */
  readonly position?: Point | null;
  /** It reserves its position and is not shown yet. */
  readonly isAbsent?: boolean;
}

export interface GraphEdgeShown {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Its condition, or null if it has none. */
  readonly label: string | null;
  readonly isBack?: boolean;
  readonly takenTimes?: number;
  readonly isLastTaken?: boolean;
  readonly fault?: string | null;
}

/** An edge as text. @param names labels of the nodes by id */
export function edgeText(edge: GraphEdgeShown, names: ReadonlyMap<string, string>): string {
  const { source, target, label, takenTimes = 0, isBack = false, fault = null } = edge;
  const nameOf = (id: string): string => names.get(id) ?? id;
  const words = [
    `${nameOf(source)} ${isBack ? 'back to' : 'to'} ${nameOf(target)}`,
    label !== null && `if ${label}`,
    takenTimes > 0 && `used ${takenTimes === 1 ? 'once' : `${takenTimes} times`}`,
    fault,
  ];
  return classes(...words).join(', ');
}

/** The texts without those that are false or null. */
export function classes(...words: readonly (string | false | null)[]): readonly string[] {
  return words.filter((word) => word !== false && word !== null);
}
