/** Deletes a document after a confirmation. */
import { useSignal } from '@preact/signals';
import type { Document } from '../../../client/client.js';
import { NotFoundError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Button } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';

export interface DeleteButtonProps {
  readonly document: Pick<Document, 'id' | 'filename'>;
  readonly slim?: boolean;
  readonly onDeleted: () => void;
}

export function DeleteButton({ document: { id, filename }, slim = false, onDeleted }: DeleteButtonProps) {
  const isAsked = useSignal(false);
  const close = (): void => void (isAsked.value = false);
  async function remove(): Promise<void> {
    close();
    try {
      await council.documents.delete(id);
    } catch (error) {
      // Another user deleted it first.
      if (!(error instanceof NotFoundError)) return toastError(error);
    }
    toast(`Deleted the document ${filename}`, 'good');
    onDeleted();
  }
  return (
    <>
      <Button
        tone={slim ? 'plain' : 'danger'}
        slim={slim}
        label={`Delete ${filename}`}
        onClick={() => (isAsked.value = true)}
      >
        Delete
      </Button>
      {isAsked.value && (
        <Confirm
          title="Delete this document?"
          verb="Delete"
          keep="Keep it"
          onConfirm={() => void remove()}
          onClose={close}
        >
          <p class="break">
            Agents cannot find <strong>{filename}</strong> any more. Runs keep the chunks that they have read.
          </p>
        </Confirm>
      )}
    </>
  );
}
