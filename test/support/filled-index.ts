import type { SearchIndex, SearchIndexOptions } from '../../src/search/index-client.js';
import { openSearchIndex } from '../../src/search/index-client.js';
import { nodeSystem } from '../../src/system/system.js';

const AT_ONCE = 64;

/** Writes texts into an index as the chunks of one document, with offline vectors. */
export async function filledIndex(index: SearchIndex, texts: readonly string[]): Promise<void> {
  for (let from = 0; from < texts.length; from += AT_ONCE) {
    const part = texts.slice(from, from + AT_ONCE);
    const added = part.map((text, at) => ({ document: 'd', chunk: from + at, page: 1, text, vector: null }));
    await index.write({ added, removed: [], checkpoint: '1' });
  }
}

/** Opens an index, and throws if its file fails. */
export function openSoundIndex(options: SearchIndexOptions): Promise<SearchIndex> {
  const fail = (error: unknown): never => {
    throw error;
  };
  return openSearchIndex(options, { system: nodeSystem(), onLost: fail, onFault: fail });
}
