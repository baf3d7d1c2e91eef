/** A model beside the offline one, as the service has them. */
import { OFFLINE_MODEL, offlineModel } from '../../src/models/offline.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { System } from '../../src/system/system.js';

/** A model, and beside it the offline one for requests that name that. */
export function withOffline(model: LanguageModel, system: Pick<System, 'after'>): LanguageModel {
  if (model.provider === 'offline') return model;
  const offline = offlineModel({ system });
  return {
    ...model,
    ask: (request, call) => (request.model === OFFLINE_MODEL ? offline : model).ask(request, call),
  };
}
