import { elementAt } from '../../src/system/element.js';

/** Numbers in [0, 1) that a seed determines (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random choices that a seed determines. */
export interface Choices {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number;
  happens(chance: number): boolean;
  /** One of some values, none of them undefined. */
  oneOf<T>(values: readonly T[]): T;
}

export function choicesBy(random: () => number): Choices {
  const below = (count: number): number => Math.floor(random() * count);
  return { below, happens: (chance) => random() < chance, oneOf: (values) => elementAt(values, below(values.length)) };
}
