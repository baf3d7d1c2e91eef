/** Token counts as providers report them: a number, or null where a provider reports none. */
import { sumOfDollars } from '../system/dollars.js';
import { fieldOf, isRecord } from '../system/untrusted.js';
import type { ModelUsage } from './port.js';

/** A count, or null if the field holds none. */
export function count(usage: unknown, name: string): number | null {
  const tokens = fieldOf(usage, name);
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null;
}

/** What a provider reports of a call, as it came. */
export type ReportedUsage = Readonly<Record<string, unknown>>;

/**
 * The report after another event of the answer. The packages make unknown counts 0, and refuse wrong ones.
 *
 * @param names of the fields that are kept: a server may send any number of others, with each event
 */
export function withReport(reported: ReportedUsage, usage: unknown, names: readonly string[]): ReportedUsage {
  if (!isRecord(usage)) return reported;
  const came = names.filter((name) => Object.hasOwn(usage, name) && usage[name] !== null);
  return came.length === 0 ? reported : { ...reported, ...Object.fromEntries(came.map((name) => [name, usage[name]])) };
}

/** The sum, or null if one of the counts is unknown. */
export function sumOf(...counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}

/** The usage of calls together; a count that one of them does not report is unknown. */
export function totalUsage(
  usages: readonly ModelUsage[],
): Required<Omit<ModelUsage, 'costUsd' | 'cacheWriteHourTokens'>> & Pick<ModelUsage, 'costUsd'> {
  const total = (of: (usage: ModelUsage) => number | null | undefined): number | null => {
    let sum: number | null = usages.length === 0 ? null : 0;
    for (const each of usages) {
      const count = of(each) ?? null;
      sum = sum === null || count === null ? null : sum + count;
    }
    return sum;
  };
  const costs = usages.flatMap((each) => each.costUsd ?? []);
  return {
    inputTokens: total((each) => each.inputTokens),
    cachedInputTokens: total((each) => each.cachedInputTokens),
    cacheWriteTokens: total((each) => each.cacheWriteTokens),
    outputTokens: total((each) => each.outputTokens),
    reasoningTokens: total((each) => each.reasoningTokens),
    ...(costs.length > 0 && costs.length === usages.length && { costUsd: sumOfDollars(costs) }),
  };
}
