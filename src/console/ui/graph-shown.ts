/** What a graph is made of, as it is shown. */
import type { NodeRole } from '../../generated/schemas.js';
import type { NodeStanding } from '../record/graph.js';
import type { Point } from '../record/placement.js';

export interface GraphNodeShown {
  readonly id: string;
  readonly label: string;
  /** A few words under its label, such as its role. */
  readonly about?: string;
  /** Default: idle. */
  readonly standing?: NodeStanding;
  /** How often it is done; shown from 2 on. */
  readonly times?: number;
  /** `mark`: something between nodes, such as a pause. */
  readonly kind?: NodeRole | 'mark';
  /** What is wrong with it. */
  readonly fault?: string | null;
  /** Its upper left corner. Where all nodes have one, nothing is laid out. */
  readonly position?: Point | null;
  /** It has a place and is not shown yet. */
  readonly isAbsent?: boolean;
}

export interface GraphEdgeShown {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Its condition; null: none. */
  readonly label: string | null;
  readonly isBack?: boolean;
  readonly takenTimes?: number;
  readonly isLastTaken?: boolean;
  readonly fault?: string | null;
}

/** An edge in words. @param names labels of the nodes, by their ids */
export function edgeWords(edge: GraphEdgeShown, names: ReadonlyMap<string, string>): string {
  const { source, target, label, takenTimes = 0, isBack = false, fault = null } = edge;
  const nameOf = (id: string): string => names.get(id) ?? id;
  const words = [
    `${nameOf(source)} ${isBack ? 'back to' : 'to'} ${nameOf(target)}`,
    label !== null && `if ${label}`,
    takenTimes > 0 && `taken ${takenTimes === 1 ? 'once' : `${takenTimes} times`}`,
    fault,
  ];
  return classes(...words).join(', ');
}

/** Those of some words that hold. */
export function classes(...words: readonly (string | false | null)[]): readonly string[] {
  return words.filter((word) => word !== false && word !== null);
}
