/** The upload button, and the list of uploads. */
import { useCallback, useRef } from 'preact/hooks';
import { Button } from '../../ui/controls.js';
import { useDroppedFiles } from '../../ui/dropped-files.js';
import { errorText } from '../../ui/states.js';
import type { Upload, UploadState, Uploads } from './store.js';

/** A button to upload files. Files can be dropped anywhere on the page. */
export function UploadCard({ uploads }: { readonly uploads: Uploads }) {
  const input = useRef<HTMLInputElement>(null);
  useDroppedFiles(useCallback((files) => uploads.add(files), [uploads]));
  return (
    <div class="drop">
      <Button tone="primary" onClick={() => input.current?.click()}>
        Upload PDFs
      </Button>
      <span class="muted">
        <span class="by-mouse">or drop them anywhere on this page, </span>50 MiB each at most
      </span>
      <input
        ref={input}
        hidden
        type="file"
        accept=".pdf,application/pdf"
        multiple
        onChange={({ currentTarget }) => {
          uploads.add(currentTarget.files ?? []);
          // So that the user can choose the same file again.
          currentTarget.value = '';
        }}
      />
    </div>
  );
}

export function UploadLines({ uploads }: { readonly uploads: Uploads }) {
  if (uploads.list.value.length === 0) return null;
  return (
    <ul class="uploads stack close" aria-label="Uploads">
      {uploads.list.value.map((each) => (
        <UploadLine key={each.id} upload={each} />
      ))}
    </ul>
  );
}

function UploadLine({ upload: { filename, state, remove, retry } }: { readonly upload: Upload }) {
  const shown = state.value;
  const isOver = shown.status === 'done' || shown.status === 'failed';
  return (
    <li class={toneOf(shown)}>
      <span class="grow">
        <strong class="break">{filename}</strong>
        <span key={shown.status} class="break" role={isOver ? 'status' : undefined}>
          {textOf(shown)}
        </span>
      </span>
      {shown.status === 'sending' && (
        <progress aria-label={`Progress of ${filename}`} max={1} value={shown.share < 1 ? shown.share : undefined} />
      )}
      {shown.status === 'failed' && retry !== null && (
        <Button slim onClick={retry}>
          Try again<span class="unseen"> {filename}</span>
        </Button>
      )}
      <Button tone="plain" slim label={`${isOver ? 'Dismiss' : 'Cancel the upload of'} ${filename}`} onClick={remove}>
        {isOver ? '✕' : 'Cancel'}
      </Button>
    </li>
  );
}

function toneOf(state: UploadState): string {
  if (state.status === 'failed') return 'bad';
  if (state.status !== 'done') return '';
  return state.result.chunks_ingested === 0 ? 'wait' : 'good';
}

function textOf(state: UploadState): string {
  switch (state.status) {
    case 'waiting':
      return 'Waiting';
    case 'sending':
      return state.share < 1 ? `${Math.floor(state.share * 100)} % sent` : 'Sent. The service reads its text.';
    case 'done':
      return state.result.message;
    case 'failed':
      return errorText(state.error);
  }
}
