/** The model of the runs of this instance. */
import type { ModelFailed } from '../errors.js';
import type { BoundedModel } from '../models/bounded.js';
import { boundedModel } from '../models/bounded.js';
import { withOffline } from '../models/offline.js';
import type { Logger } from '../system/logger.js';
import type { ContextConfig, ContextDeps } from './context-deps.js';

/** The model behind the bound on calls, the circuit breakers and the offline model. */
export function createModel(
  { maxModelCalls, modelOutageMs }: ContextConfig,
  { model, system, logger }: ContextDeps,
): BoundedModel {
  return boundedModel(withOffline(model, system), {
    maxCalls: maxModelCalls,
    outageMs: modelOutageMs,
    system,
    onOutage: (name, failure) => logOutage(logger, name, failure),
  });
}

function logOutage(logger: Logger, model: string, failure: ModelFailed | null): void {
  if (failure === null) logger.info({ model }, 'model: its server is back');
  else logger.error({ model, kind: failure.data.kind }, `model: its server is out: ${failure.message}`);
}
