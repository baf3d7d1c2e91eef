/** The calls of one attempt: reserves each but the first, which its start has reserved, and sums their usage. */
import { ModelFailed } from '../errors.js';
import { isUnsent } from '../models/billing.js';
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

export class AttemptCalls {
  readonly #reserve: Reserve | undefined;
  /** Usage of the calls of which some is known. */
  readonly #known: ModelUsage[] = [];
  /** Usage of the last call, or null before the first. */
  #last: ModelUsage | null = null;
  #hasReserved = false;

  /** @param reserve absent: the run has no budget */
  constructor(reserve: Reserve | undefined) {
    this.#reserve = reserve;
  }

  /** Before each request that may be billed. Rejects if it may not be made. */
  async begin(request: ModelRequest): Promise<void> {
    const last = this.#last;
    this.#last = UNKNOWN_USAGE;
    if (last === null || this.#reserve === undefined) return;
    this.#hasReserved = true;
    await this.#reserve({ request, last, total: this.total });
  }

  /** After each that was answered, or whose usage is known although it was not. */
  end(usage: ModelUsage): void {
    this.#last = usage;
    this.#known.push(usage);
  }

  /** After a call that has failed. In a run with a budget one that was not sent costs nothing. */
  fail(error: unknown): void {
    if (!(error instanceof ModelFailed)) return;
    const isFree = this.#reserve !== undefined && isUnsent(error.data);
    const usage = error.data.usage ?? (isFree ? NO_USAGE : undefined);
    if (usage !== undefined) this.end(usage);
  }

  /** Usage of all calls together. */
  get total(): ReturnType<typeof totalUsage> {
    return totalUsage(this.#known);
  }

  /** Usage of the last call if it was reserved by itself. */
  get lastCall(): { readonly lastCall?: ModelUsage } {
    return this.#hasReserved && this.#last !== null ? { lastCall: this.#last } : {};
  }
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
