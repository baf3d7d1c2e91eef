/** A document, page by page, with the chunks that search finds. */
import { useEffect, useRef } from 'preact/hooks';
import type { Document, NumberedChunk } from '../../../client/client.js';
import { council } from '../../shell/council.js';
import { navigate, navigateFromHere, pageUrl, query } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { Badge, Button, Field } from '../../ui/controls.js';
import { allOf, useResource } from '../../ui/resource.js';
import { WhenLoaded, Empty } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { countOf } from '../../record/counts.js';
import { DeleteButton } from './delete-button.js';
import { usePageTitle } from '../../shell/title.js';

export function DocumentPage({ id }: { readonly id: string }) {
  const found = useResource(id, (signal) => council.documents.get(id, { signal }));
  const loaded = found.state.value;
  const title = loaded.status === 'ready' ? loaded.value.filename : 'Document';
  usePageTitle(title, 'Documents');
  const go = navigateFromHere();
  return (
    <main id="page">
      <div class="page-head">
        <div>
          <a class="small" href={pageUrl(['documents'])}>
            All documents
          </a>
          <h1>{title}</h1>
          {loaded.status === 'ready' && <Facts document={loaded.value} />}
        </div>
        {loaded.status === 'ready' && may('documents') && (
          <DeleteButton document={loaded.value} onDeleted={() => go(pageUrl(['documents']))} />
        )}
      </div>
      <WhenLoaded of={found} what="the document">
        {(document) => <Pages document={document} />}
      </WhenLoaded>
    </main>
  );
}

function Facts({ document: { id, pages, chunks, ingested_at: at } }: { readonly document: Document }) {
  return (
    <p class="document-facts">
      <span>{countOf(pages, 'page')}</span>
      {chunks === 0 ? <Badge tone="wait">no text</Badge> : <span>{countOf(chunks, 'chunk')}</span>}
      <span>
        uploaded <Ago at={at} />
      </span>
      <span class="mono clip" title={id}>
        SHA-256 {id.slice(0, 12)}…
      </span>
    </p>
  );
}

/** The page that the URL names. */
function Pages({ document: { id, pages } }: { readonly document: Document }) {
  const page = numberIn('page') ?? 1;
  const to = (other: number): string => pageUrl(['documents', id], { page: other });
  return (
    <>
      <nav class="row" aria-label="Pages of the document">
        <Step href={page > 1 ? to(page - 1) : null}>‹ Previous</Step>
        <Field label="Page" isLabelUnseen>
          {(control) => (
            <input
              {...control}
              class="input numeric"
              type="number"
              min={1}
              max={pages}
              key={page}
              defaultValue={String(page)}
              onChange={({ currentTarget: { valueAsNumber: other } }) => {
                if (other >= 1 && other <= pages) navigate(to(other));
              }}
            />
          )}
        </Field>
        <span class="muted">of {pages}</span>
        <Step href={page < pages ? to(page + 1) : null}>Next ›</Step>
      </nav>
      <Chunks key={page} id={id} page={page} />
    </>
  );
}

function Step({ href, children }: { readonly href: string | null; readonly children: string }) {
  if (href === null) return <Button disabled>{children}</Button>;
  return (
    <a class="button" href={href}>
      {children}
    </a>
  );
}

function Chunks({ id, page }: { readonly id: string; readonly page: number }) {
  const found = useResource(`${id} ${page}`, (signal) =>
    allOf(council.documents.chunks(id, { page, limit: 1_000, signal })),
  );
  return (
    <WhenLoaded of={found} what="the chunks">
      {(chunks) => <Found {...{ id, page, chunks }} />}
    </WhenLoaded>
  );
}

interface FoundProps {
  readonly id: string;
  readonly page: number;
  readonly chunks: readonly NumberedChunk[];
}

function Found({ id, page, chunks }: FoundProps) {
  if (chunks.length === 0) {
    return <Empty title={`No text on page ${page}`} />;
  }
  const target = numberIn('chunk');
  return (
    <ol class="chunks stack">
      {chunks.map((each) => (
        <Chunk
          key={each.chunk}
          chunk={each}
          href={pageUrl(['documents', id], { page, chunk: each.chunk })}
          isTarget={each.chunk === target}
        />
      ))}
    </ol>
  );
}

interface ChunkProps {
  readonly chunk: NumberedChunk;
  /** The URL of the chunk. */
  readonly href: string;
  /** Whether the URL names it: it is marked and scrolled into view. */
  readonly isTarget: boolean;
}

function Chunk({ chunk: { chunk, text }, href, isTarget }: ChunkProps) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!isTarget) return;
    element.current?.scrollIntoView({ block: 'center' });
    element.current?.focus({ preventScroll: true });
  }, [isTarget]);
  return (
    <li
      ref={element}
      class={`card${isTarget ? ' target' : ''}`}
      tabIndex={-1}
      aria-current={isTarget ? 'true' : undefined}
    >
      <a class="small" href={href}>
        Chunk {chunk + 1}
      </a>
      <p class="prose">{flowing(text)}</p>
    </li>
  );
}

/** Joins the lines of a printed page; paragraphs stay. */
function flowing(text: string): string {
  return text.replace(/(?<!\n)\n(?!\n)/g, ' ');
}

/** A whole number in the query, or null. */
function numberIn(name: string): number | null {
  const text = query.value.get(name) ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}
