/** The parts of a graph: nodes as buttons with state signs, edges as lines with labels. */
import type { NodeState } from '../record/graph.js';
import type { PlacedEdge, PlacedNode, Point } from '../record/placement.js';
import { centreOf } from '../record/placement.js';
import type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';
import { classes } from './graph-shown.js';
import { headOf, lineOf } from './graph-geometry.js';

const STATES: Readonly<Record<NodeState, { readonly sign: string; readonly word: string }>> = {
  idle: { sign: '', word: '' },
  active: { sign: '●', word: 'active' },
  waiting: { sign: '…', word: 'waiting' },
  next: { sign: '❚❚', word: 'waiting for a decision' },
  failed: { sign: '✕', word: 'failed' },
  done: { sign: '✓', word: 'done' },
};

export interface NodeBoxProps {
  readonly node: GraphNodeShown;
  readonly place: PlacedNode;
  readonly isSelected: boolean;
  /** The user is drawing an edge from it. */
  readonly isLinking: boolean;
  /** Whether Tab stops here; arrows move to other nodes. */
  readonly isReached: boolean;
  readonly onFocus: (element: HTMLElement, place: PlacedNode) => void;
  readonly onClick: (id: string) => void;
  readonly onKeyDown: (event: KeyboardEvent, place: PlacedNode) => void;
  readonly onDrag: ((event: PointerEvent, place: PlacedNode) => void) | undefined;
  readonly onDraw: ((event: PointerEvent, place: PlacedNode) => void) | undefined;
}

export function NodeBox({ node, place, isSelected, isLinking, isReached, onDrag, onDraw, ...on }: NodeBoxProps) {
  const { id, label, state = 'idle', kind = 'agent', fault = null } = node;
  const look = classes('graph-node', state, kind, isLinking && 'linking', fault !== null && 'faulty');
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

function NodeWords({ label, about = '', state = 'idle', times = 0, fault = null }: GraphNodeShown) {
  const { sign, word } = STATES[state];
  return (
    <>
      <span class="graph-label clip">{label}</span>
      {about !== '' && <span class="graph-about clip">{about}</span>}
      {word !== '' && <span class="unseen">{word}</span>}
      {sign !== '' && (
        <span class="graph-sign" aria-hidden="true">
          {sign}
        </span>
      )}
      {times > 1 && <span class="graph-times">{times}×</span>}
      {fault !== null && <span class="graph-fault clamp">{fault}</span>}
    </>
  );
}

// Edges.

export interface EdgeProps {
  readonly edge: GraphEdgeShown;
  readonly way: PlacedEdge;
  readonly words: string;
  readonly isSelected: boolean;
  readonly onSelect: ((id: string) => void) | undefined;
}

/** The line of an edge. @param isMoving its target is active because of it */
export function EdgeLine({ edge, way, isMoving, isSelected, onSelect }: EdgeProps & { readonly isMoving: boolean }) {
  const { id, isBack = false, takenTimes = 0, isLastTaken = false, fault = null } = edge;
  const states = [isBack && 'back', takenTimes > 0 && 'taken', isLastTaken && 'last', fault !== null && 'faulty'];
  const look = classes('graph-edge', ...states, isMoving && 'moving', isSelected && 'selected');
  const line = lineOf(way.points);
  return (
    <g class={look.join(' ')}>
      <path class="line" d={line} />
      <path class="head" d={headOf(way.points)} />
      {onSelect !== undefined && <path class="catch" d={line} onClick={() => onSelect(id)} />}
    </g>
  );
}

/** The label of an edge; a button if the edge can be selected. */
export function EdgeLabel(props: EdgeProps) {
  const { edge, way, onSelect } = props;
  const text = textOf(edge);
  if (way.label === null || (text === '' && onSelect === undefined)) return null;
  const style = { transform: `translate(${way.label.x}px, ${way.label.y}px) translate(-50%, -50%)` };
  return (
    <span class="graph-edge-place" style={style}>
      <EdgeChip {...props} text={text} />
    </span>
  );
}

function EdgeChip({ edge, words, isSelected, onSelect, text }: EdgeProps & { readonly text: string }) {
  const { id, label, isLastTaken = false, fault = null } = edge;
  const look = classes('graph-chip clip', isLastTaken && 'last', fault !== null && 'faulty');
  const shared = { class: look.join(' '), title: fault ?? label ?? undefined };
  if (onSelect === undefined) return <span {...shared}>{text}</span>;
  return (
    <>
      <button {...shared} type="button" aria-label={words} aria-pressed={isSelected} onClick={() => onSelect(id)}>
        {text === '' ? '→' : text}
      </button>
      {fault !== null && (
        <span class="graph-fault clamp" aria-hidden="true">
          {fault}
        </span>
      )}
    </>
  );
}

function textOf({ label, takenTimes = 0, fault = null }: GraphEdgeShown): string {
  return classes(label, takenTimes > 1 && `${takenTimes}×`, fault !== null && '⚠').join(' ');
}

/** An edge that the user is drawing. */
export function LineInWork({ from, to }: { readonly from: PlacedNode; readonly to: Point }) {
  const points = [centreOf(from), to];
  return (
    <g class="graph-edge last">
      <path class="line" d={lineOf(points)} />
      <path class="head" d={headOf(points)} />
    </g>
  );
}
