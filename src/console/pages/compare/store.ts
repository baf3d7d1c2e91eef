/** The comparison of two runs, updated while they run. */
import type { ReadonlySignal } from '@preact/signals';
import { computed } from '@preact/signals';
import type { ComparedPair, ComparedRuns } from '../../record/compare.js';
import { compareRuns } from '../../record/compare.js';
import type { RunStore } from '../run/store.js';

/** Consecutive equal pairs, or one pair that differs. */
export type Stretch =
  | { readonly kind: 'same'; readonly pairs: readonly ComparedPair[] }
  | { readonly kind: 'other'; readonly pair: ComparedPair };

export class Comparison {
  readonly left: RunStore;
  readonly right: RunStore;
  /** Or null while one of the runs has no event. */
  readonly compared: ReadonlySignal<ComparedRuns | null>;
  readonly stretches: ReadonlySignal<readonly Stretch[]>;

  /** @param clock the time now, in milliseconds since 1970 */
  constructor(left: RunStore, right: RunStore, clock: ReadonlySignal<number>) {
    this.left = left;
    this.right = right;
    // Finished runs do not depend on the clock.
    const until = computed(() => (left.isOver.value && right.isOver.value ? 0 : clock.value));
    this.compared = computed(() => compareRuns(sideOf(left), sideOf(right), new Date(until.value).toISOString()));
    this.stretches = computed(() => stretchesOf(this.compared.value?.pairs ?? []));
  }

  /** Follows both runs. @returns stops following */
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
    if (pair.similarity !== 'same') stretches.push({ kind: 'other', pair });
    else if (last?.kind === 'same') stretches[stretches.length - 1] = { kind: 'same', pairs: [...last.pairs, pair] };
    else stretches.push({ kind: 'same', pairs: [pair] });
  }
  return stretches;
}
