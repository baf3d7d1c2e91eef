/** The model and the prices of the runs of this instance. */
import { readFileSync } from 'node:fs';
import { BUILT_IN_PROVIDERS } from '../config-providers.js';
import type { ModelFailed } from '../errors.js';
import type { BoundedModel } from '../models/bounded.js';
import type { EndedCall } from '../models/bounded.js';
import { boundedModel } from '../models/bounded.js';
import type { PriceTable } from '../models/prices.js';
import { priceTable } from '../models/prices.js';
import type { Logger } from '../system/logger.js';
import { isRecord } from '../system/untrusted.js';
import type { KnownModels } from '../blueprint/models.js';
import type { ContextConfig, ContextDeps } from './context-deps.js';

/** The model, wrapped by the bound on calls and the circuit breakers. */
export function createModel(
  { maxModelCalls, modelOutageMs }: ContextConfig,
  { model, system, logger }: ContextDeps,
  onCallEnded: (call: EndedCall) => void,
): BoundedModel {
  return boundedModel(model, {
    maxCalls: maxModelCalls,
    outageMs: modelOutageMs,
    system,
    onCallEnded,
    onOutage: (name, failure) => logOutage(logger, name, failure),
  });
}

/** The names of the providers, the default first. */
export function providerNames({ providers = [], provider }: ContextDeps['model']): readonly string[] {
  return providers.length === 0 ? [provider] : providers.map(({ name }) => name);
}

/** The shipped prices. A price in PRICES_FILE replaces the shipped one. */
export function createPrices(own: ContextConfig['prices'], sha256: (text: string) => string): PriceTable {
  const shipped: unknown = JSON.parse(readFileSync(SHIPPED_PRICES, 'utf8'));
  return priceTable(isRecord(shipped) ? shipped : {}, own, sha256);
}

/** What blueprints need to know of the models and their prices. */
export function knownModels(model: BoundedModel, { priceOf }: Pick<PriceTable, 'priceOf'>): KnownModels {
  return {
    providers: model.providers().map(({ name }) => name),
    builtIn: BUILT_IN_PROVIDERS,
    unpriced(name) {
      const full = model.fullName(name);
      return priceOf(full) === null ? full : null;
    },
  };
}

/** From dist/src/app, where this file runs. */
const SHIPPED_PRICES = new URL('../../../schemas/tables/prices.json', import.meta.url);

function logOutage(logger: Logger, model: string, failure: ModelFailed | null): void {
  if (failure === null) logger.info({ model }, 'model: its server is back');
  else logger.error({ model, kind: failure.data.kind }, `model: its server is out: ${failure.message}`);
}
