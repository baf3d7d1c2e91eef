/** The events of a run that users look for. */
import type { RunEvent } from '../../client/run-events.js';

/** An event that users look for. */
export interface Landmark {
  readonly seq: number;
  readonly kind: 'draft' | 'score' | 'pause' | 'decision' | 'failure' | 'end';
  /** Or null if the event has no node. */
  readonly node: string | null;
  /** Or null for other kinds. */
  readonly score: number | null;
}

/** An event as a landmark, or null if users do not look for it. */
export function landmarkAt({ seq, type, data }: RunEvent): Landmark | null {
  const plain = { seq, node: null, score: null };
  switch (type) {
    case 'NodeCompleted': {
      const { node, member, output } = data;
      // Members have no landmarks: their panel, rank or jury has one when it closes.
      if (member !== undefined || 'analysis' in output) return null;
      return 'score' in output ? { seq, kind: 'score', node, score: output.score } : { ...plain, kind: 'draft', node };
    }
    case 'PanelClosed': {
      const { node, result } = data;
      const isScore = result !== null && 'score' in result;
      return isScore ? { seq, kind: 'score', node, score: result.score } : { ...plain, kind: 'draft', node };
    }
    case 'NodeFailed':
      return { ...plain, kind: 'failure', node: data.node };
    case 'RunPaused':
      return { ...plain, kind: 'pause' };
    case 'GateDecided':
      return { ...plain, kind: 'decision' };
    case 'RunCompleted':
    case 'RunFailed':
      return { ...plain, kind: 'end' };
    default:
      return null;
  }
}
