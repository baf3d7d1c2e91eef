/** Where a person looks at a drawing: moved by dragging, wheel, pinch and keys, and by nothing else. */
import type { Signal } from '@preact/signals';
import { useComputed, useSignal } from '@preact/signals';
import { createRef } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { Box, Point } from '../record/placement.js';
import type { Camera, Size } from './camera-sight.js';
import { begun, fitted, zoomed } from './camera-sight.js';

/** Null: nothing was shown yet. Kept by whoever wants it to outlive the drawing. */
export type CameraState = Signal<Camera | null>;

/** What a step of the keyboard or of a button moves and zooms. */
const [STEP, ZOOM] = [60, 1.25];
/** A pointer that moved less has clicked. */
const CLICK = 4;

export interface CameraOptions {
  readonly drawing: Box;
  /** Default: one of its own. */
  readonly camera?: CameraState | undefined;
  readonly grows?: boolean | undefined;
  /** The part of the drawing that is shown at first where not all of it can be. */
  readonly part: Box;
}

/** A camera over a drawing, fitted when both drawing and window are first there. `view`: the window, an element that clips. */
export function useCamera({ drawing, camera, grows = false, part }: CameraOptions): ViewCamera {
  const own = useSignal<Camera | null>(null);
  const state = camera ?? own;
  const held = useMemo(() => new ViewCamera(state), [state]);
  held.drawing = drawing;
  held.part = part;
  held.grows = grows;
  const isThere = drawing.width > 0;
  // Read through this alone: whoever draws is not drawn anew when the camera moves.
  const isUnset = useComputed(() => state.value === null).value;
  useEffect(() => {
    const { current: view } = held.view;
    if (!isThere || view === null) return;
    const whenSized = new ResizeObserver(() => state.value ?? held.show());
    whenSized.observe(view);
    return () => whenSized.disconnect();
  }, [held, isThere, isUnset]);
  return held;
}

const NOTHING: Box = { x: 0, y: 0, width: 0, height: 0 };

/** The camera, and what its window listens with. */
export class ViewCamera {
  readonly view = createRef<HTMLDivElement>();
  readonly state: CameraState;
  drawing = NOTHING;
  part = NOTHING;
  grows = false;
  /** Pointers that are down, and where in the window. */
  readonly #held = new Map<number, Point>();
  #isDragged = false;

  constructor(state: CameraState) {
    this.state = state;
  }

  /** Shows all of the drawing. */
  readonly fit = (): void => this.#see((window) => fitted(this.drawing, window));
  readonly zoomIn = (): void => this.#zoom(ZOOM);
  readonly zoomOut = (): void => this.#zoom(1 / ZOOM);

  /** Shows it as it is shown at first. */
  show(): void {
    this.#see((window) => begun(this.drawing, window, this));
  }

  /** Where a pointer is in the drawing. */
  drawingPoint(event: MouseEvent): Point {
    const { x, y, scale } = this.state.value ?? { x: 0, y: 0, scale: 1 };
    const point = this.#pointOf(event);
    return { x: (point.x - x) / scale, y: (point.y - y) / scale };
  }

  /** Moves as little as shows a part of the drawing. */
  reveal(box: Box): void {
    const { width, height } = this.#size;
    this.#change(({ x, y, scale }) => ({
      x: x + outside(box.x * scale + x, box.width * scale, width),
      y: y + outside(box.y * scale + y, box.height * scale, height),
      scale,
    }));
  }

  readonly onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 0 ? 1 : 30);
    // A pinch comes as a wheel with Ctrl, in small steps.
    const factor = Math.exp(-Math.max(-60, Math.min(60, pixels)) * (event.ctrlKey ? 0.01 : 0.003));
    this.#zoom(factor, this.#pointOf(event));
  };

  readonly onPointerDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    if (this.#held.size === 0) this.#isDragged = false;
    this.#held.set(event.pointerId, this.#pointOf(event));
  };

  readonly onPointerMove = (event: PointerEvent): void => {
    const before = this.#held.get(event.pointerId);
    if (before === undefined) return;
    const point = this.#pointOf(event);
    const other = [...this.#held].find(([id]) => id !== event.pointerId)?.[1];
    if (!this.#isDragged && other === undefined && distance(before, point) < CLICK) return;
    this.#isDragged = true;
    this.view.current?.setPointerCapture(event.pointerId);
    this.#held.set(event.pointerId, point);
    if (other === undefined) return this.#pan(point.x - before.x, point.y - before.y);
    this.#pan((point.x - before.x) / 2, (point.y - before.y) / 2);
    const middle = { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 };
    this.#zoom(distance(point, other) / Math.max(1, distance(before, other)), middle);
  };

  readonly onPointerUp = (event: PointerEvent): void => void this.#held.delete(event.pointerId);
  readonly onPointerCancel = this.onPointerUp;

  /** The end of dragging is no click on what lies there. */
  readonly onClickCapture = (event: MouseEvent): void => {
    if (this.#isDragged) event.stopPropagation();
    this.#isDragged = false;
  };

  readonly onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = event.target === this.view.current ? ARROWS[event.key] : undefined;
    if (arrow !== undefined) this.#pan(-arrow.x * STEP, -arrow.y * STEP);
    else if (event.key === '+' || event.key === '=') this.zoomIn();
    else if (event.key === '-') this.zoomOut();
    else if (event.key === '0') this.fit();
    else return;
    event.preventDefault();
  };

  get #size(): Size {
    const { clientWidth: width = 0, clientHeight: height = 0 } = this.view.current ?? {};
    return { width, height };
  }

  #see(camera: (window: Size) => Camera): void {
    const { width, height } = this.#size;
    if (width > 0 && height > 0 && this.drawing.width > 0) this.state.value = camera({ width, height });
  }

  #change(next: (camera: Camera) => Camera): void {
    if (this.state.value !== null) this.state.value = next(this.state.value);
  }

  #pan(dx: number, dy: number): void {
    this.#change((at) => ({ ...at, x: at.x + dx, y: at.y + dy }));
  }

  #zoom(factor: number, point?: Point): void {
    const { width, height } = this.#size;
    this.#change((at) => zoomed(at, factor, point ?? { x: width / 2, y: height / 2 }));
  }

  /** Where a pointer is in the window. */
  #pointOf(event: MouseEvent): Point {
    const { left = 0, top = 0 } = this.view.current?.getBoundingClientRect() ?? {};
    return { x: event.clientX - left, y: event.clientY - top };
  }
}

export const ARROWS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y);
}

/** How far to move what is `size` long at `from` so that it lies between 0 and `room`. */
function outside(from: number, size: number, room: number): number {
  if (from < 8) return 8 - from;
  return Math.min(0, room - 8 - (from + size));
}
