/** The arithmetic of the camera over a drawing. */
import type { Box, Point } from '../record/placement.js';
import { centreOf } from '../record/placement.js';

/** Shows a point of the drawing at `point * scale + (x, y)` of the window. */
export interface Camera extends Point {
  readonly scale: number;
}

const [SMALLEST, LARGEST] = [0.1, 2.5];
/** Initial scale of a part of a large drawing: node labels are readable. */
const READABLE = 0.8;
/** Smallest initial scale of a whole drawing. To see all of it is worth smaller labels. */
const WHOLE = 0.6;
const MARGIN = 28;
/** Height of the buttons below, in pixels. */
const TOOLS = 24;

export type Size = Pick<Box, 'width' | 'height'>;

/** Shows the whole drawing in the middle, not enlarged. */
export function fitView(drawing: Box, window: Size): Camera {
  return over(drawing, window, { smallest: SMALLEST, grows: false, part: drawing });
}

/**
 * The initial view: the whole drawing, or the readable surroundings of a part. A drawing that `grows` to the right starts
 * at the left.
 */
export function initialView(drawing: Box, window: Size, { part, grows }: Pick<Sight, 'part' | 'grows'>): Camera {
  return over(drawing, window, { smallest: READABLE, grows, part });
}

interface Sight {
  readonly smallest: number;
  readonly grows: boolean;
  /** The part in the middle if the drawing is larger than the window. */
  readonly part: Box;
}

function over(drawing: Box, window: Size, { smallest, grows, part }: Sight): Camera {
  const room = { width: window.width - 2 * MARGIN, height: window.height - 2 * MARGIN - TOOLS };
  const whole = Math.min(1, room.width / drawing.width, room.height / drawing.height);
  const scale = whole >= WHOLE ? whole : Math.max(smallest, whole);
  const spare = { x: room.width - drawing.width * scale, y: room.height - drawing.height * scale };
  const before = centreOf({ ...part, x: part.x - drawing.x, y: part.y - drawing.y });
  return {
    x: MARGIN - drawing.x * scale + (grows && spare.x > 0 ? 0 : shift(spare.x, room.width / 2 - before.x * scale)),
    y: MARGIN - drawing.y * scale + shift(spare.y, room.height / 2 - before.y * scale),
    scale,
  };
}

/** Centres a drawing that fits; else moves it to the wanted offset, without a gap at either end. */
function shift(spare: number, wanted: number): number {
  return spare > 0 ? spare / 2 : Math.min(0, Math.max(spare, wanted));
}

/** Scales by a factor around `point` of the window. */
export function zoomed({ x, y, scale }: Camera, factor: number, point: Point): Camera {
  const next = Math.min(LARGEST, Math.max(SMALLEST, scale * factor));
  return { x: point.x - ((point.x - x) * next) / scale, y: point.y - ((point.y - y) * next) / scale, scale: next };
}
