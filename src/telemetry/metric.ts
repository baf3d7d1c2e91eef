/** A metric as it is read for one request. */
import type { Distribution, Labelled } from './counts.js';

interface Described {
  readonly name: string;
  readonly help: string;
  /** Names of the labels. */
  readonly labels: readonly string[];
}

export type Metric =
  | (Described & { readonly kind: 'counter' | 'gauge'; readonly values: readonly Labelled<number>[] })
  | (Described & { readonly kind: 'histogram'; readonly from: Pick<Distribution, 'bounds' | 'all'> });

/** The text of a page of metrics, with its media type. */
export interface MetricsText {
  readonly type: string;
  readonly text: string;
}
