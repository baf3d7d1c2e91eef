/** The documents that members can search: upload, search, list and delete. */
import { useSignal, useSignalEffect } from '@preact/signals';
import type { Document } from '../../../client/client.js';
import { council } from '../../shell/council.js';
import { pageUrl, path } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { Badge, Button } from '../../ui/controls.js';
import { allOf, useResource } from '../../ui/resource.js';
import { WhenLoaded, Empty } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { countOf } from '../../record/counts.js';
import { DeleteButton } from './delete-button.js';
import { DocumentPage } from './document.js';
import { Search } from './search.js';
import { Uploads } from './store.js';
import { UploadCard, UploadLines } from './uploads.js';
import { usePageTitle } from '../../shell/title.js';

/** Rows shown at first, and added by “Show more”. */
const ROWS = 100;

const uploads = new Uploads(council);

export function DocumentsPage() {
  const [, id] = path.value;
  return id === undefined ? <DocumentList /> : <DocumentPage id={id} />;
}

function DocumentList() {
  usePageTitle('Documents');
  const documents = useResource('documents', (signal) => allOf(council.documents.list({ signal })));
  useSignalEffect(() => {
    if (uploads.ended.value > 0) documents.reload();
  });
  return (
    <main id="page">
      <div class="page-head">
        <h1>Documents</h1>
      </div>
      {may('documents') && <UploadCard uploads={uploads} />}
      <UploadLines uploads={uploads} />
      <WhenLoaded of={documents} what="the documents">
        {(found) => <Found documents={found} onChange={documents.reload} />}
      </WhenLoaded>
    </main>
  );
}

function Found({ documents, onChange }: { readonly documents: readonly Document[]; readonly onChange: () => void }) {
  const shown = useSignal(ROWS);
  if (documents.length === 0) {
    return (
      <Empty title="No documents yet">
        <p>
          {may('documents')
            ? 'Upload a PDF. Members with the PDF reader search it and cite its pages.'
            : 'Your key may not upload documents.'}
        </p>
      </Empty>
    );
  }
  return (
    <>
      <Search />
      <section class="stack" aria-labelledby="all-documents">
        <h2 id="all-documents">
          All documents <span class="muted numeric">{documents.length}</span>
        </h2>
        <ul class="documents">
          {documents.slice(0, shown.value).map((each) => (
            <Row key={each.id} document={each} onChange={onChange} />
          ))}
        </ul>
        {documents.length > shown.value && (
          <Button onClick={() => (shown.value += ROWS)}>
            Show {Math.min(ROWS, documents.length - shown.value)} more
          </Button>
        )}
      </section>
    </>
  );
}

function Row({ document, onChange }: { readonly document: Document; readonly onChange: () => void }) {
  const { id, filename, pages, chunks, ingested_at: at, error } = document;
  return (
    <li>
      <a class="name break" href={pageUrl(['documents', id])}>
        {filename}
      </a>
      <span class="document-facts">
        <span>{countOf(pages, 'page')}</span>
        <span>{chunks === 0 ? <Badge tone="wait">no text</Badge> : countOf(chunks, 'chunk')}</span>
        {error !== undefined && <Badge tone="bad">corrupt</Badge>}
        <Ago at={at} />
      </span>
      {may('documents') && <DeleteButton document={document} slim onDeleted={onChange} />}
    </li>
  );
}
