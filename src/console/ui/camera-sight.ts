/** What is seen of a drawing through a window: the arithmetic of the camera, which knows no page. */
import type { Box, Point } from '../record/placement.js';
import { centreOf } from '../record/placement.js';

/** A point of the drawing stands at `point * scale + (x, y)` of the window it is seen through. */
export interface Camera extends Point {
  readonly scale: number;
}

const [SMALLEST, LARGEST] = [0.1, 2.5];
/** Smallest scale at which a drawing is first shown: what is written at its nodes can be read. */
const READABLE = 0.6;
const MARGIN = 28;
/** What the buttons below hide of the window. */
const TOOLS = 24;

export type Size = Pick<Box, 'width' | 'height'>;

/** All of a drawing, in the middle and no larger than it is. */
export function fitted(drawing: Box, window: Size): Camera {
  return over(drawing, window, { smallest: SMALLEST, grows: false, part: drawing });
}

/**
 * A drawing as it is first shown: all of it, or as much around a part of it as can be read. One that `grows` to the right
 * begins at the left.
 */
export function begun(drawing: Box, window: Size, { part, grows }: Pick<Sight, 'part' | 'grows'>): Camera {
  return over(drawing, window, { smallest: READABLE, grows, part });
}

interface Sight {
  readonly smallest: number;
  readonly grows: boolean;
  /** What is in the middle where not all of the drawing has room. */
  readonly part: Box;
}

function over(drawing: Box, window: Size, { smallest, grows, part }: Sight): Camera {
  const room = { width: window.width - 2 * MARGIN, height: window.height - 2 * MARGIN - TOOLS };
  const scale = Math.max(smallest, Math.min(1, room.width / drawing.width, room.height / drawing.height));
  const spare = { x: room.width - drawing.width * scale, y: room.height - drawing.height * scale };
  const before = centreOf({ ...part, x: part.x - drawing.x, y: part.y - drawing.y });
  return {
    x: MARGIN - drawing.x * scale + (grows && spare.x > 0 ? 0 : shift(spare.x, room.width / 2 - before.x * scale)),
    y: MARGIN - drawing.y * scale + shift(spare.y, room.height / 2 - before.y * scale),
    scale,
  };
}

/** In the middle where there is room to spare, else where it is wanted, as far as that leaves no gap at an end. */
function shift(spare: number, wanted: number): number {
  return spare > 0 ? spare / 2 : Math.min(0, Math.max(spare, wanted));
}

/** Larger or smaller by a factor; what is at `point` of the window stays there. */
export function zoomed({ x, y, scale }: Camera, factor: number, point: Point): Camera {
  const next = Math.min(LARGEST, Math.max(SMALLEST, scale * factor));
  return { x: point.x - ((point.x - x) * next) / scale, y: point.y - ((point.y - y) * next) / scale, scale: next };
}
