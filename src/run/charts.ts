/** Compiled charts by graph hash: a council that runs often is compiled once. */
import type { Graph } from '../generated/schemas.js';
import type { Chart } from './machine.js';
import { compileChart } from './machine.js';

export interface Charts {
  of(frozen: { readonly graph: Graph; readonly graphHash: string }): Chart;
}

/** @param limit charts kept, the longest unused go first; a chart of 20 nodes takes about 113 KB, its moves up to 1 MB */
export function chartCache(limit = 100): Charts {
  const cache = new Map<string, Chart>();
  return {
    of({ graph, graphHash }) {
      const chart = cache.get(graphHash) ?? compileChart(graph);
      cache.delete(graphHash);
      cache.set(graphHash, chart);
      const [oldest] = cache.keys();
      if (cache.size > limit && oldest !== undefined) cache.delete(oldest);
      return chart;
    },
  };
}
