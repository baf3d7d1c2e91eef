/** The pages of documents and of the web that the tools of a run have found. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { Source } from '../../../draft/sources.js';
import { missingOf, quotationsText } from '../../../draft/verdicts.js';
import {
  citationsOf,
  citedSources,
  hasUnknownMark,
  keyOf,
  sourceText,
  sourcesAt,
  sourcesOf,
} from '../../../draft/sources.js';
import type { DraftSource } from '../../../generated/schemas.js';
import { pageUrl } from '../../shell/router.js';
import { Citations } from '../../ui/prose.js';
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

/** The quotations of a draft that a source lacks. */
export function MissingQuotations({
  source,
  cited,
}: {
  readonly source: Source;
  readonly cited: readonly DraftSource[];
}) {
  const own = cited.find((each) => sourcesOf(each).some((of) => keyOf(of) === keyOf(source)));
  const missing = own === undefined ? [] : missingOf(own, cited);
  return missing.map((quoted) => (
    <span key={quoted} class="missing-quotation">
      Not found in it: “{quoted}”
    </span>
  ));
}

/** How many quotations of a draft were not found, or nothing if it quotes nothing. */
export function QuotationsNote({ cited }: { readonly cited: readonly DraftSource[] }) {
  const text = quotationsText(cited);
  return text === null ? null : <p class="small muted">{text}</p>;
}

/** The address of a source, or null without a page to link to. */
export function hrefOf(store: RunStore, source: Source): string | null {
  if (source.kind === 'web') return /^https?:\/\//.test(source.url) ? source.url : null;
  const { document, page, chunk } = source;
  return store.source.isLive ? pageUrl(['documents', document], { page, chunk }) : null;
}

interface CitedProps {
  /** The runs whose sources the texts cite. */
  readonly stores: readonly RunStore[];
  /** The draft whose citations have the first numbers, or null. */
  readonly draft: string | null;
  /** The sources of the runs. */
  readonly sources: readonly (readonly Source[])[];
  readonly children: ComponentChildren;
}

/** Shows the marks in texts as numbers: first those that the draft cites, in its order. */
export function Cited({ stores, draft, sources, children }: CitedProps) {
  const names = stores.map((store) => store.documentNames.value);
  const citations = useMemo(() => {
    const all = [...new Map(sources.flat().map((source) => [keyOf(source), source])).values()];
    const cited = citedSources(draft ?? '', all);
    const [store] = stores;
    if (store === undefined) return new Map();
    const others = all.filter((source) => !cited.includes(source));
    return citationsOf([...cited, ...others], {
      names: new Map(names.flatMap((each) => [...each])),
      hrefOf: (source) => hrefOf(store, source),
    });
  }, [draft, ...sources, ...names]);
  return <Citations.Provider value={citations}>{children}</Citations.Provider>;
}

/** Shows texts that cite the sources of a run up to the event shown, or up to the one that it is compared with. */
export function CitedInRun({ store, children }: { readonly store: RunStore; readonly children: ComponentChildren }) {
  const { finalDraft = null, draft = null } = store.snapshot.value ?? {};
  const other = store.comparedWith.value ?? 0;
  const sources = other > store.shown.value ? sourcesAt(store.record.events, other) : store.sources.value;
  return (
    <Cited stores={[store]} draft={finalDraft ?? draft} sources={[sources]}>
      {children}
    </Cited>
  );
}

const QUOTATION_MARK = /["'“”„«»‹›‘‚「『]/;

/** Loads the file names of documents, and what the draft cites if it quotes, or if it cites what only parents have read. */
export function useSources(store: RunStore): void {
  useDocumentNames(store);
  const { parent = null } = store.summary.value ?? {};
  const { finalDraft = null, draft: current = null } = store.record.snapshotAt(store.head.value) ?? {};
  const draft = finalDraft ?? current ?? '';
  const isAsked = useMemo(() => {
    const own = sourcesAt(store.record.events, store.head.value);
    // The service finds the quotations; the page only sees whether there may be some.
    const isQuoting = own.length > 0 && QUOTATION_MARK.test(draft);
    return isQuoting || (parent !== null && hasUnknownMark(draft, own));
  }, [draft, parent]);
  useEffect(() => {
    const { cited: ask } = store.source;
    if (!isAsked || ask === undefined) return undefined;
    const ending = new AbortController();
    ask(ending.signal).then(
      (sources) => (store.cited.value = { draft, sources }),
      // An unknown mark stays as it is, and no quotation is marked.
      () => undefined,
    );
    return () => ending.abort();
  }, [isAsked && draft]);
}

/** Loads the file names of the documents that tools have found. */
function useDocumentNames(store: RunStore): void {
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
