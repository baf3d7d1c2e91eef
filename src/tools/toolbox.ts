import type { PassageSearch } from '../library/passages.js';
import { pdfReader } from './pdf-reader.js';
import type { Toolbox } from './tool.js';
import type { SearchProvider } from './web-search.js';
import { webSearch } from './web-search.js';

/** Puts the tools together; what an instance has no source for, it does not have. */
export function toolbox(sources: {
  readonly web?: SearchProvider | null;
  readonly passages?: PassageSearch | null;
}): Toolbox {
  const { web = null, passages = null } = sources;
  const tools = [...(web === null ? [] : [webSearch(web)]), ...(passages === null ? [] : [pdfReader(passages)])];
  return {
    available: () => tools.filter((tool) => tool.isAvailable()).map((tool) => tool.grant),
    granted: (grants) => tools.filter((tool) => grants.includes(tool.grant)),
  };
}
