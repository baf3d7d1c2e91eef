/** The edges of a graph: lines, and what is written at them. */
import type { PlacedEdge, PlacedNode, Point } from '../record/placement.js';
import { centreOf } from '../record/placement.js';
import { headOf, lineOf } from './graph-ways.js';
import type { GraphEdgeShown } from './graph-shown.js';
import { classes } from './graph-shown.js';

export interface EdgeProps {
  readonly edge: GraphEdgeShown;
  readonly way: PlacedEdge;
  readonly words: string;
  readonly isSelected: boolean;
  readonly onSelect: ((id: string) => void) | undefined;
}

/** Its line. @param isMoving its target is at work because of it */
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

/** What is written at it; a button where it can be selected. */
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
  const look = classes('graph-chip', isLastTaken && 'last', fault !== null && 'faulty');
  const shared = { class: look.join(' '), title: fault ?? label ?? undefined };
  if (onSelect === undefined) return <span {...shared}>{text}</span>;
  return (
    <>
      <button {...shared} type="button" aria-label={words} aria-pressed={isSelected} onClick={() => onSelect(id)}>
        {text === '' ? '→' : text}
      </button>
      {fault !== null && (
        <span class="graph-fault" aria-hidden="true">
          {fault}
        </span>
      )}
    </>
  );
}

function textOf({ label, takenTimes = 0, fault = null }: GraphEdgeShown): string {
  return classes(label, takenTimes > 1 && `${takenTimes}×`, fault !== null && '⚠').join(' ');
}

/** An edge that is being drawn. */
export function LineInWork({ from, to }: { readonly from: PlacedNode; readonly to: Point }) {
  const points = [centreOf(from), to];
  return (
    <g class="graph-edge last">
      <path class="line" d={lineOf(points)} />
      <path class="head" d={headOf(points)} />
    </g>
  );
}
