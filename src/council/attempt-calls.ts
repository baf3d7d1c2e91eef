/** The calls of one attempt: reserves each but the first, which its start has reserved, and sums their usage. */
import { ModelFailed } from '../errors.js';
import { isUnsent, mayBeBilled } from '../models/billing.js';
import { materialSection } from '../models/material.js';
import type { ModelRequest, ModelUsage } from '../models/port.js';
import { totalUsage } from '../models/usage.js';

/** A call that an attempt wants to make after others. */
export interface FurtherCall {
  readonly request: ModelRequest;
  /** Usage of the call before, and of all calls before. */
  readonly last: ModelUsage;
  readonly total: ModelUsage;
}

/** Resolves when a further call may be made, and rejects when the attempt no longer counts. */
export type Reserve = (next: FurtherCall) => Promise<void>;

/** What an attempt needs to count its calls. */
export interface CallAccounts {
  /** Absent: the run has no budget. */
  readonly reserve?: Reserve;
  /** The cost of a call in US dollars by the price of its model, or null if it is unknown. Absent: always unknown. */
  readonly costOf?: (usage: ModelUsage) => number | null;
}

export class AttemptCalls {
  readonly #accounts: CallAccounts;
  /** The usage of each call that has ended and may have been billed. */
  readonly #ended: ModelUsage[] = [];
  /** Usage of the last call, or null before the first. */
  #last: ModelUsage | null = null;
  /** Calls that have begun. */
  #begun = 0;

  constructor(accounts: CallAccounts) {
    this.#accounts = accounts;
  }

  /** Before each request that may be billed. Rejects if it may not be made. */
  async begin(request: ModelRequest): Promise<void> {
    const last = this.#last;
    this.#last = UNKNOWN_USAGE;
    this.#begun += 1;
    if (last !== null) await this.#accounts.reserve?.({ request, last, total: this.total });
  }

  /** After each that was answered, or that failed and may have been billed: its usage, or null if that is unknown. */
  end(usage: ModelUsage | null): void {
    this.#last = usage ?? UNKNOWN_USAGE;
    this.#ended.push(this.#last);
  }

  /** After a call that has failed. In a run with a budget one that was not sent costs nothing. */
  fail(error: unknown): void {
    if (!(error instanceof ModelFailed)) return;
    const isFree = this.#accounts.reserve !== undefined && isUnsent(error.data);
    if (isFree) this.end(error.data.usage ?? NO_USAGE);
    else if (mayBeBilled(error.data)) this.end(error.data.usage ?? null);
  }

  /** Usage of all calls together. A count that is unknown of one of them is unknown. */
  get total(): ReturnType<typeof totalUsage> {
    // Each call has a cost of its own: the price of a token depends on the length of the prompt.
    return totalUsage(this.#ended.map((each) => this.#withCost(each)));
  }

  #withCost(usage: ModelUsage): ModelUsage {
    const costUsd = usage.costUsd ?? this.#accounts.costOf?.(usage) ?? null;
    return costUsd === null ? usage : { ...usage, costUsd };
  }

  /** How many calls there were, and the usage of the last one, if there were several; with a budget each was reserved. */
  get several(): { readonly calls?: number; readonly lastCall?: ModelUsage } {
    if (this.#begun < 2 || this.#last === null) return {};
    return { calls: this.#begun, ...(this.#accounts.reserve !== undefined && { lastCall: this.#last }) };
  }
}

/** All texts that a request sends, for its reservation: also the model's own messages, with their reasoning and signatures. */
export function textsSent({
  system,
  material,
  prompt,
  rounds = [],
}: Pick<ModelRequest, 'system' | 'material' | 'prompt' | 'rounds'>): readonly string[] {
  const said = rounds.flatMap(({ text, exchanges, turn }) => [
    turn === undefined ? text : JSON.stringify(turn),
    ...exchanges.flatMap(({ call, result }) => [call.name, call.argumentsJson, result]),
  ]);
  return [system, ...(material === undefined ? [] : [materialSection(material)]), prompt, ...said];
}

/** The usage of a call before its answer, or if the provider reports none. */
const UNKNOWN_USAGE: ModelUsage = { inputTokens: null, outputTokens: null };

const NO_USAGE: ModelUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
};
