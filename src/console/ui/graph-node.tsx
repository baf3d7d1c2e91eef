/** A node of a graph: a control, with signs of what has happened at it. */
import type { NodeStanding } from '../record/graph.js';
import type { PlacedNode } from '../record/placement.js';
import type { GraphNodeShown } from './graph-shown.js';
import { classes } from './graph-shown.js';

const STANDINGS: Readonly<Record<NodeStanding, { readonly sign: string; readonly word: string }>> = {
  idle: { sign: '', word: '' },
  active: { sign: '●', word: 'active' },
  waiting: { sign: '…', word: 'waits' },
  next: { sign: '❚❚', word: 'waits for a decision' },
  failed: { sign: '✕', word: 'failed' },
  done: { sign: '✓', word: 'done' },
};

export interface NodeBoxProps {
  readonly node: GraphNodeShown;
  readonly place: PlacedNode;
  readonly isSelected: boolean;
  /** An edge is being drawn from it. */
  readonly isLinking: boolean;
  /** Whether Tab stops here: arrows lead on. */
  readonly isReached: boolean;
  readonly onFocus: (element: HTMLElement, place: PlacedNode) => void;
  readonly onClick: (id: string) => void;
  readonly onKeyDown: (event: KeyboardEvent, place: PlacedNode) => void;
  readonly onDrag: ((event: PointerEvent, place: PlacedNode) => void) | undefined;
  readonly onDraw: ((event: PointerEvent, place: PlacedNode) => void) | undefined;
}

export function NodeBox({ node, place, isSelected, isLinking, isReached, onDrag, onDraw, ...on }: NodeBoxProps) {
  const { id, label, standing = 'idle', kind = 'agent', fault = null } = node;
  const look = classes('graph-node', standing, kind, isLinking && 'linking', fault !== null && 'faulty');
  const transform = `translate(${place.x}px, ${place.y}px)`;
  return (
    <div
      class="graph-place"
      data-node={id}
      style={{ transform, width: `${place.width}px`, height: `${place.height}px` }}
    >
      <button
        type="button"
        class={look.join(' ')}
        title={fault ?? label}
        tabIndex={isReached ? 0 : -1}
        aria-pressed={isSelected}
        onFocus={(event) => on.onFocus(event.currentTarget, place)}
        onClick={() => on.onClick(id)}
        onKeyDown={(event) => on.onKeyDown(event, place)}
        onPointerDown={onDrag && ((event) => onDrag(event, place))}
      >
        <NodeWords {...node} />
      </button>
      {onDraw !== undefined && (
        <span class="graph-port" title="Draw an edge from here" onPointerDown={(event) => onDraw(event, place)} />
      )}
    </div>
  );
}

function NodeWords({ label, about = '', standing = 'idle', times = 0, fault = null }: GraphNodeShown) {
  const { sign, word } = STANDINGS[standing];
  return (
    <>
      <span class="graph-label">{label}</span>
      {about !== '' && <span class="graph-about">{about}</span>}
      {word !== '' && <span class="unseen">{word}</span>}
      {sign !== '' && (
        <span class="graph-sign" aria-hidden="true">
          {sign}
        </span>
      )}
      {times > 1 && <span class="graph-times">{times}×</span>}
      {fault !== null && <span class="graph-fault">{fault}</span>}
    </>
  );
}
