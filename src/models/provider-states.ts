/** What is known of each provider: its settings, how its last call ended, and the calls under way. */
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { LanguageModel, ProviderInfo } from './port.js';
import { providerOf } from './port.js';
import type { ModelUse } from './fair-semaphore.js';

export interface ProviderState extends ProviderInfo {
  /** `unknown` until its first call of this process has ended. */
  readonly state: 'ok' | 'unknown' | 'failing';
  /** The failure of its last call, or null if that was answered. */
  readonly detail: string | null;
  readonly callsInFlight: number;
}

/** Kinds of failures by which a provider fails, and not a single request. */
const FAILING: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['connection_refused', 'connection_lost', 'host_unknown', 'unreachable', 'network_error'] as const),
  ...(['tls_failed', 'timeout', 'bad_gateway', 'unavailable', 'overloaded', 'server_error'] as const),
  ...(['gateway_timeout', 'rate_limited', 'unauthorized', 'forbidden', 'quota_used_up'] as const),
  ...(['redirected', 'unreadable_answer'] as const),
]);

/** Kinds of failures that say nothing of a provider: the call was cancelled, or there is no such provider. */
const UNASKED: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>(['aborted', 'not_configured']);

export class ProviderStates {
  readonly #providers: readonly ProviderInfo[];
  /** By name: the failure of the last call, or null if it was answered. */
  readonly #last = new Map<string, string | null>();

  constructor({
    providers = [],
    provider,
    defaultModel,
  }: Pick<LanguageModel, 'providers' | 'provider' | 'defaultModel'>) {
    this.#providers = providers.length > 0 ? providers : [{ name: provider, api: provider, host: null, defaultModel }];
  }

  /** @param outcome what a call to the model threw, or null if it was answered */
  onCallEnded(model: string, outcome: unknown): void {
    const isUnasked = outcome instanceof ModelFailed && UNASKED.has(outcome.data.kind);
    if (isUnasked) return;
    const isFailing = outcome instanceof ModelFailed && FAILING.has(outcome.data.kind);
    this.#last.set(this.#nameOf(model), isFailing ? outcome.message : null);
  }

  list(uses: readonly ModelUse[]): readonly ProviderState[] {
    return this.#providers.map((each) => {
      const last = this.#last.get(each.name);
      const own = uses.filter(({ model }) => this.#nameOf(model) === each.name);
      return {
        ...each,
        state: last === undefined ? 'unknown' : last === null ? 'ok' : 'failing',
        detail: last ?? null,
        callsInFlight: own.reduce((sum, { active }) => sum + active, 0),
      };
    });
  }

  /** A model without a provider's name is of the only one. */
  #nameOf(model: string): string {
    const name = providerOf(model);
    return this.#providers.some((each) => each.name === name) ? name : (this.#providers[0]?.name ?? '');
  }
}
