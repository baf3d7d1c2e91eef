/** The model and the tools of the runs of this instance. */
import type { ModelFailed } from '../errors.js';
import type { BoundedModel } from '../models/bounded.js';
import { boundedModel } from '../models/bounded.js';
import { withOffline } from '../models/offline.js';
import { pdfReader } from '../council/tools/pdf-reader.js';
import type { Toolbox } from '../council/tools/tool.js';
import type { SearchProvider } from '../council/tools/web-search.js';
import { webSearch } from '../council/tools/web-search.js';
import type { ChunkSearch } from '../search/document-search.js';
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

/** The tools of an instance: one for each source that it has. */
export function toolbox(sources: {
  readonly web?: SearchProvider | null;
  readonly chunkSearch?: ChunkSearch | null;
}): Toolbox {
  const { web = null, chunkSearch = null } = sources;
  const tools = [...(web === null ? [] : [webSearch(web)]), ...(chunkSearch === null ? [] : [pdfReader(chunkSearch)])];
  return {
    available: () => tools.filter((tool) => tool.isAvailable()).map((tool) => tool.grant),
    granted: (grants) => tools.filter((tool) => grants.includes(tool.grant)),
  };
}
