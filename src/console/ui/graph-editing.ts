/** Edits a graph by pointer: moves nodes and draws edges. */
import type { ReadonlySignal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import type { PlacedNode, Point } from '../record/placement.js';
import type { ViewCamera } from './camera.js';

/** A node that the user is moving. */
export interface NodeDrag {
  readonly id: string;
  readonly position: Point;
}

/** An edge that the user is drawing; `to` is null by keyboard. */
export interface EdgeInWork {
  readonly source: string;
  readonly to: Point | null;
}

export interface GraphChanges {
  readonly onMove: ((id: string, position: Point) => void) | undefined;
  readonly onConnect: ((source: string, target: string) => void) | undefined;
}

export interface GraphEditing {
  readonly drag: ReadonlySignal<NodeDrag | null>;
  readonly edge: ReadonlySignal<EdgeInWork | null>;
  dragNode(event: PointerEvent, place: PlacedNode, camera: ViewCamera): void;
  drawEdge(event: PointerEvent, source: string, camera: ViewCamera): void;
  /** Starts an edge by keyboard, or cancels it with null. */
  begin(source: string | null): void;
  /** Ends the edge at a node, or cancels it with null. */
  end(target: string | null): void;
}

export function useGraphEditing({ onMove, onConnect }: GraphChanges): GraphEditing {
  const drag = useSignal<NodeDrag | null>(null);
  const edge = useSignal<EdgeInWork | null>(null);
  const end = (target: string | null): void => {
    const source = edge.value?.source;
    edge.value = null;
    if (source !== undefined && target !== null) onConnect?.(source, target);
  };
  return {
    drag,
    edge,
    end,
    begin: (source) => (edge.value = source === null ? null : { source, to: null }),
    dragNode(event, { id, x, y }, camera) {
      const from = camera.drawingPoint(event);
      const onDrag = (moved: PointerEvent): void => {
        const at = camera.drawingPoint(moved);
        if (drag.value === null && Math.hypot(at.x - from.x, at.y - from.y) < 4) return;
        drag.value = { id, position: { x: Math.round(x + at.x - from.x), y: Math.round(y + at.y - from.y) } };
      };
      followPointer(event, onDrag, () => {
        const moved = drag.value;
        drag.value = null;
        if (moved !== null) onMove?.(moved.id, moved.position);
      });
    },
    drawEdge(event, source, camera) {
      event.preventDefault();
      const onDrag = (moved: PointerEvent): void => void (edge.value = { source, to: camera.drawingPoint(moved) });
      followPointer(event, onDrag, (dropped) => end(nodeUnder(dropped)));
    },
  };
}

/** Follows a pressed pointer until its release. */
function followPointer(
  event: PointerEvent,
  onDrag: (event: PointerEvent) => void,
  onDrop: (event: PointerEvent) => void,
): void {
  const element = event.currentTarget;
  if (!(element instanceof HTMLElement) || event.button !== 0) return;
  event.stopPropagation();
  const ending = new AbortController();
  const { signal } = ending;
  const drop = (dropped: PointerEvent): void => {
    ending.abort();
    onDrop(dropped);
  };
  element.setPointerCapture(event.pointerId);
  element.addEventListener('pointermove', onDrag, { signal });
  element.addEventListener('pointerup', drop, { signal });
  element.addEventListener('pointercancel', drop, { signal });
}

function nodeUnder({ clientX, clientY }: PointerEvent): string | null {
  const place = document.elementFromPoint(clientX, clientY)?.closest('[data-node]');
  return place instanceof HTMLElement ? (place.dataset['node'] ?? null) : null;
}
