/** The pages that the tools of a run have found, as a view of the run. */
import { citedSources } from '../../record/sources.js';
import { SourceItem } from './sources.js';
import type { RunStore } from './store.js';

/** All sources up to the event shown. */
export function Sources({ store }: { readonly store: RunStore }) {
  const { value: sources } = store.sources;
  if (sources.length === 0) return <p class="muted">No tool has found anything.</p>;
  const { draft = null, finalDraft = null } = store.snapshot.value ?? {};
  const cited = new Set(citedSources(finalDraft ?? draft ?? '', sources));
  return (
    <ul class="card source-list">
      {sources.map((source, at) => (
        <li key={at}>
          <SourceItem {...{ store, source }} />
          <span class="small muted">
            {cited.has(source) && 'Cited in the draft. '}
            {source.readBy.length === 0
              ? 'Read before the fork'
              : `Read by ${source.readBy.map((node) => store.labelOf(node)).join(', ')}`}
          </span>
        </li>
      ))}
    </ul>
  );
}
