/** Takes a document away, after it was asked whether that is meant. */
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
      // Somebody else was faster: that is what was wanted.
      if (!(error instanceof NotFoundError)) return toastError(error);
    }
    toast(`${filename} is deleted`, 'good');
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
            <strong>{filename}</strong> is found by no agent any more. Runs keep what they have read of it.
          </p>
        </Confirm>
      )}
    </>
  );
}
