/** Reads drafts for councils. The parser of Markdown, which no other run needs, is loaded with the first council. */
import type { ItemsOf } from '../draft/items.js';
import type { DraftParser } from '../run/pending-events.js';
import { present } from '../system/element.js';

export function draftParser(): DraftParser {
  let loaded: ItemsOf | null = null;
  return {
    async load() {
      loaded ??= (await import('../draft/items.js')).itemsOf;
    },
    itemsOf: (draft, by) => present(loaded, 'parser of drafts')(draft, by),
  };
}
