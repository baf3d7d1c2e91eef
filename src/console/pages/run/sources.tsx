/** The pages of documents and of the web that the tools of a run have found. */
import { useEffect } from 'preact/hooks';
import type { Citation, Source } from '../../record/sources.js';
import { citedSources, markOf } from '../../record/sources.js';
import { pageUrl } from '../../shell/router.js';
import type { RunStore } from './store.js';

interface SourceProps {
  readonly store: RunStore;
  readonly source: Source;
}

/** The name and the page of a source, linked where the link works. */
export function SourceItem({ store, source }: SourceProps) {
  const text = sourceText(source, store.documentNames.value);
  const href = hrefOf(store, source);
  if (href === null) return <>{text}</>;
  return source.kind === 'document' ? (
    <a href={href}>{text}</a>
  ) : (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

/** A source in words: `Bathing and health.pdf, page 2`. @param names the file names of documents by id */
function sourceText(source: Source, names: ReadonlyMap<string, string>): string {
  if (source.kind === 'web') return source.title.trim() === '' ? source.url : source.title;
  return `${documentText(source.document, names)}, page ${source.page}`;
}

/** The file name of a document, or that it is unknown. */
export function documentText(id: string, names: ReadonlyMap<string, string>): string {
  return names.get(id) ?? `Document ${id.slice(0, 8)}`;
}

function hrefOf(store: RunStore, source: Source): string | null {
  if (source.kind === 'web') return /^https?:\/\//.test(source.url) ? source.url : null;
  const { document, page, chunk } = source;
  return store.source.isLive ? pageUrl(['documents', document], { page, chunk }) : null;
}

interface Naming {
  readonly store: RunStore;
  readonly names: ReadonlyMap<string, string>;
}

/** The marks of cited pages as numbers in their list. */
export function citationsOf(cited: readonly Source[], { store, names }: Naming): ReadonlyMap<string, Citation> {
  return new Map(
    cited.flatMap((source, at) => {
      if (source.kind === 'web') return [];
      const number = at + 1;
      const title = `Source ${number}: ${sourceText(source, names)}`;
      return [[markOf(source), { number, title, href: hrefOf(store, source) }] as const];
    }),
  );
}

/** Loads the file names of the documents that tools have found. */
export function useDocumentNames(store: RunStore): void {
  const wanted = [...new Set(store.sources.value.flatMap((each) => (each.kind === 'document' ? [each.document] : [])))];
  const missing = wanted.filter((id) => !store.documentNames.value.has(id));
  useEffect(() => {
    const { documentNames: ask } = store.source;
    if (missing.length === 0 || ask === undefined) return undefined;
    const ending = new AbortController();
    ask(missing, ending.signal).then(
      (found) => (store.documentNames.value = new Map([...store.documentNames.value, ...found])),
      // Without a name, a document has its id.
      () => undefined,
    );
    return () => ending.abort();
  }, [missing.join()]);
}

/** All sources up to the event shown. */
export function Sources({ store }: { readonly store: RunStore }) {
  const { value: sources } = store.sources;
  if (sources.length === 0) return <p class="muted">No tool has found anything.</p>;
  const { draft = null, finalDraft = null } = store.snapshot.value ?? {};
  const cited = new Set(citedSources(finalDraft ?? draft ?? '', sources));
  return (
    <ul class="source-list">
      {sources.map((source, at) => (
        <li key={at}>
          <SourceItem {...{ store, source }} />
          <span class="small muted">
            {cited.has(source) && 'Cited in the draft. '}
            Read by {source.readBy.map((node) => store.labelOf(node)).join(', ')}
          </span>
        </li>
      ))}
    </ul>
  );
}
