import type { System } from '../../src/system/system.js';
import { Slices } from '../../src/system/async/slices.js';
import { nodeSystem } from '../../src/system/system.js';

/** Slices of about so many units of work: their clock moves on by a millisecond each time it is looked at. */
export function slicesOf(units: number, { soon }: Pick<System, 'soon'> = nodeSystem()): Slices {
  let nowMs = 0;
  return new Slices({ soon, monotonicMs: () => (nowMs += 1) }, { sliceMs: units });
}
