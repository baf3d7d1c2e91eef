/** A council of three parts, each a council of two parts of its own, and a process that runs it and kills itself. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { FrozenCouncil, Graph } from '../../src/generated/schemas.js';
import type { EventStoreSettings } from '../../src/config.js';
import type { ClusterSettings } from '../../src/cluster/failure-detector.js';
import type { LanguageModel } from '../../src/models/port.js';
import { graphOf, graphWith } from './given.js';
import type { AppendBoundary } from './mortal-log.js';

const EACH = { forEach: 'lines', maxParallel: 8, onError: 'fail', topic: '{{topic}}/{{item}}' } as const;
const NODE = { timeoutMs: 600_000, maxAttempts: 4 };

function councilOf(id: string, graph: Graph): FrozenCouncil {
  return { id, name: id, version: 1, graph };
}

function splitting(label: string, inner: FrozenCouncil): Graph {
  return graphWith(
    [
      { ...NODE, id: 'split', label },
      { ...NODE, id: 'parts', role: 'council', council: inner, ...EACH },
    ],
    graphOf('split -> parts').edges,
  );
}

const WRITE = graphWith([{ ...NODE, id: 'write', label: 'Write' }], []);

export const NESTED = splitting('Three', councilOf('chapter', splitting('Two', councilOf('section', WRITE))));

/** Calls of a run that nothing interrupts: one for its lines, one for those of each chapter, one for each section. */
export const NESTED_CALLS = 1 + 3 + 6;

export const USAGE = { inputTokens: 7, outputTokens: 5, costUsd: 0.001 };

/** A model that writes each call into a file before it answers. */
export function nestedModel(file: string, isCalled: () => void = () => undefined): LanguageModel {
  return {
    provider: 'nested',
    defaultModel: 'nested-1',
    async ask({ promptInput: { label, topic } }) {
      appendFileSync(file, `${label} ${topic}\n`);
      isCalled();
      await new Promise((resolve) => setImmediate(resolve));
      return { text: TEXTS[label] ?? `Text of ${topic}`, usage: USAGE };
    },
  };
}

const TEXTS: Readonly<Record<string, string>> = { Three: '- a\n- b\n- c', Two: '- x\n- y' };

/** The calls in the file, each with its number. */
export function callsIn(file: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  if (!existsSync(file)) return counts;
  for (const call of readFileSync(file, 'utf8').split('\n').filter(Boolean))
    counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
}

export interface NestedPlan {
  readonly path: string;
  readonly callsFile: string;
  readonly runId: string;
  readonly eventStore?: EventStoreSettings;
  readonly cluster?: ClusterSettings;
  readonly maxActiveRuns: number;
  /** Where it dies: around an append to any run, or at a call, by their number from 0. */
  readonly crash: { readonly boundary: AppendBoundary | 'call'; readonly ordinal: number };
}
