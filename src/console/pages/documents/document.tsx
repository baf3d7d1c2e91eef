/** A document, page by page, with the passages that are found of it. */
import { useEffect, useRef } from 'preact/hooks';
import type { Document, NumberedChunk } from '../../../client/client.js';
import { council } from '../../shell/council.js';
import { navigate, navigateFromHere, pageUrl, query } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { Badge, Button, Field } from '../../ui/controls.js';
import { allOf, useResource } from '../../ui/resource.js';
import { Awaited, Empty } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { countOf } from '../../record/counts.js';
import { DeleteButton } from './delete-button.js';

export function DocumentPage({ id }: { readonly id: string }) {
  const found = useResource(id, (signal) => council.documents.get(id, { signal }));
  const loaded = found.state.value;
  const go = navigateFromHere();
  return (
    <main id="page">
      <div class="page-head">
        <div>
          <a href={pageUrl(['documents'])}>← All documents</a>
          <h1>{loaded.status === 'ready' ? loaded.value.filename : 'Document'}</h1>
          {loaded.status === 'ready' && <Facts document={loaded.value} />}
        </div>
        {loaded.status === 'ready' && may('documents') && (
          <DeleteButton document={loaded.value} onDeleted={() => go(pageUrl(['documents']))} />
        )}
      </div>
      <Awaited of={found} what="the document">
        {(document) => <Pages document={document} />}
      </Awaited>
    </main>
  );
}

function Facts({ document: { id, pages, chunks, ingested_at: at } }: { readonly document: Document }) {
  return (
    <p class="document-facts">
      <span>{countOf(pages, 'page')}</span>
      {chunks === 0 ? <Badge tone="wait">no text</Badge> : <span>{countOf(chunks, 'passage')}</span>}
      <span>
        taken in <Ago at={at} />
      </span>
      <span class="mono clip" title={id}>
        SHA-256 {id.slice(0, 12)}…
      </span>
    </p>
  );
}

/** One page at a time: that of the address. */
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
      <Passages key={page} id={id} page={page} />
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

function Passages({ id, page }: { readonly id: string; readonly page: number }) {
  const found = useResource(`${id} ${page}`, (signal) =>
    allOf(council.documents.chunks(id, { page, limit: 1_000, signal })),
  );
  return (
    <Awaited of={found} what="the passages">
      {(passages) => <Found {...{ id, page, passages }} />}
    </Awaited>
  );
}

interface FoundProps {
  readonly id: string;
  readonly page: number;
  readonly passages: readonly NumberedChunk[];
}

function Found({ id, page, passages }: FoundProps) {
  if (passages.length === 0) {
    return <Empty title={`No text on page ${page}`} />;
  }
  const chunk = numberIn('chunk');
  return (
    <ol class="passages">
      {passages.map((each) => (
        <Passage
          key={each.chunk}
          passage={each}
          href={pageUrl(['documents', id], { page, chunk: each.chunk })}
          isMeant={each.chunk === chunk}
        />
      ))}
    </ol>
  );
}

interface PassageProps {
  readonly passage: NumberedChunk;
  /** Its own address. */
  readonly href: string;
  /** Whether the address means it: it is marked, and scrolled to. */
  readonly isMeant: boolean;
}

function Passage({ passage: { chunk, text }, href, isMeant }: PassageProps) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!isMeant) return;
    element.current?.scrollIntoView({ block: 'center' });
    element.current?.focus({ preventScroll: true });
  }, [isMeant]);
  return (
    <li
      ref={element}
      class={`card${isMeant ? ' meant' : ''}`}
      tabIndex={-1}
      aria-current={isMeant ? 'true' : undefined}
    >
      <a class="small" href={href}>
        Passage {chunk + 1}
      </a>
      <p class="prose">{flowing(text)}</p>
    </li>
  );
}

/** A text whose lines are those of a printed page, for a width of its own; paragraphs stay. */
function flowing(text: string): string {
  return text.replace(/(?<!\n)\n(?!\n)/g, ' ');
}

/** A whole number of the address, from 0; null: it says none. */
function numberIn(name: string): number | null {
  const text = query.value.get(name) ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}
