/**
 * The camera over a drawing. Only the user moves it: by dragging, wheel, pinch and keys. When the window gets another size,
 * it shows the initial view again, or keeps the middle of the view that the user has chosen.
 */
import type { Signal } from '@preact/signals';
import { useComputed, useSignal } from '@preact/signals';
import { createRef } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { Box, Point } from '../record/placement.js';
import type { Camera, Size } from './camera-sight.js';
import { initialView, fitView, zoomed } from './camera-sight.js';

/** The camera, or null before the first view. A caller may keep it longer than the drawing. */
export type CameraState = Signal<Camera | null>;

/** Pixels and factor of one step by key or button. */
const [STEP, ZOOM] = [60, 1.25];
/** A smaller movement of the pointer is a click, in pixels. */
const CLICK = 4;

export interface CameraOptions {
  readonly drawing: Box;
  /** Default: a separate state. */
  readonly camera?: CameraState | undefined;
  readonly grows?: boolean | undefined;
  /** The part to show first if the drawing is too large. */
  readonly part: Box;
}

/** A camera that sets its initial view when drawing and window have a size. Attach `view` to the clipping element. */
export function useCamera({ drawing, camera, grows = false, part }: CameraOptions): ViewCamera {
  const own = useSignal<Camera | null>(null);
  const state = camera ?? own;
  const held = useMemo(() => new ViewCamera(state), [state]);
  held.drawing = drawing;
  held.part = part;
  held.grows = grows;
  const isThere = drawing.width > 0;
  // Computed, so that a movement of the camera does not render the caller.
  const isUnset = useComputed(() => state.value === null).value;
  useEffect(() => {
    const { current: view } = held.view;
    if (!isThere || view === null) return;
    const whenSized = new ResizeObserver(held.onResize);
    whenSized.observe(view);
    return () => whenSized.disconnect();
  }, [held, isThere, isUnset]);
  return held;
}

const NOTHING: Box = { x: 0, y: 0, width: 0, height: 0 };

/** The camera with the event handlers of its window. */
export class ViewCamera {
  readonly view = createRef<HTMLDivElement>();
  readonly state: CameraState;
  drawing = NOTHING;
  part = NOTHING;
  grows = false;
  /** Pressed pointers with their positions in the window. */
  readonly #held = new Map<number, Point>();
  #isDragged = false;
  /** The initial view that it has set, or null once the user has moved it. */
  #initial: Camera | null = null;
  #lastSize: Size | null = null;

  constructor(state: CameraState) {
    this.state = state;
  }

  /** Shows the whole drawing. */
  readonly fit = (): void => this.#see((window) => fitView(this.drawing, window));
  readonly zoomIn = (): void => this.#zoom(ZOOM);
  readonly zoomOut = (): void => this.#zoom(1 / ZOOM);

  /** Shows the initial view. */
  show(): void {
    this.#see((window) => initialView(this.drawing, window, this));
    this.#initial = this.state.value;
  }

  readonly onResize = (): void => {
    const [before, size] = [this.#lastSize, this.#size];
    if (size.width === 0 || size.height === 0) return;
    this.#lastSize = size;
    const isSame = before === null || (before.width === size.width && before.height === size.height);
    if (this.state.value === null) this.show();
    else if (isSame) return;
    else if (this.state.value === this.#initial) this.show();
    else this.#pan((size.width - before.width) / 2, (size.height - before.height) / 2);
  };

  /** The position of a pointer in the drawing. */
  drawingPoint(event: MouseEvent): Point {
    const { x, y, scale } = this.state.value ?? { x: 0, y: 0, scale: 1 };
    const point = this.#pointOf(event);
    return { x: (point.x - x) / scale, y: (point.y - y) / scale };
  }

  /** Moves just far enough to show a part of the drawing. */
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
    const sideways = event.deltaX * (event.deltaMode === 0 ? 1 : 30);
    // Browsers turn a wheel with Shift sideways.
    if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.#pan(-sideways, 0);
    const pixels = event.deltaY * (event.deltaMode === 0 ? 1 : 30);
    // Browsers send a pinch as a wheel with Ctrl, in small steps.
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

  /** Suppresses the click at the end of dragging. */
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

  /** The position of a pointer in the window. */
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

/** The offset that moves a range of `size` at `from` between 0 and `room`. */
function outside(from: number, size: number, room: number): number {
  if (from < 8) return 8 - from;
  return Math.min(0, room - 8 - (from + size));
}
