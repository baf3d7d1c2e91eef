/** Two runs as they are compared: both followed to their end, and what they have in common folded. */
import type { ReadonlySignal } from '@preact/signals';
import { computed } from '@preact/signals';
import type { ComparedPair, ComparedRuns } from '../../record/compare.js';
import { compareRuns } from '../../record/compare.js';
import type { RunStore } from '../run/store.js';

/** Pairs in a row that are alike, or one that is not. */
export type Stretch =
  | { readonly kind: 'same'; readonly pairs: readonly ComparedPair[] }
  | { readonly kind: 'other'; readonly pair: ComparedPair };

export class Comparison {
  readonly left: RunStore;
  readonly right: RunStore;
  /** Null while one of them has no event. */
  readonly compared: ReadonlySignal<ComparedRuns | null>;
  readonly stretches: ReadonlySignal<readonly Stretch[]>;

  /** @param clock the time now, in milliseconds since 1970 */
  constructor(left: RunStore, right: RunStore, clock: ReadonlySignal<number>) {
    this.left = left;
    this.right = right;
    // Of runs that are over nothing moves with the time.
    const until = computed(() => (left.isOver.value && right.isOver.value ? 0 : clock.value));
    this.compared = computed(() => compareRuns(sideOf(left), sideOf(right), new Date(until.value).toISOString()));
    this.stretches = computed(() => stretchesOf(this.compared.value?.pairs ?? []));
  }

  /** Follows both. Returns what ends it. */
  start(): () => void {
    const ends = [this.left.start(), this.right.start()];
    return () => ends.forEach((end) => end());
  }
}

function sideOf({ record, head }: RunStore) {
  return { record, seq: head.value };
}

function stretchesOf(pairs: readonly ComparedPair[]): readonly Stretch[] {
  const stretches: Stretch[] = [];
  for (const pair of pairs) {
    const last = stretches.at(-1);
    if (pair.likeness !== 'same') stretches.push({ kind: 'other', pair });
    else if (last?.kind === 'same') stretches[stretches.length - 1] = { kind: 'same', pairs: [...last.pairs, pair] };
    else stretches.push({ kind: 'same', pairs: [pair] });
  }
  return stretches;
}
