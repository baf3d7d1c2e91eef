/** The dialogs that cancel a run, and that erase a run which has ended. */
import type { Signal } from '@preact/signals';
import { council } from '../../shell/council.js';
import { navigate, pageUrl } from '../../shell/router.js';
import { toast, toastError } from '../../shell/toasts.js';
import { TextBox } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';

interface DialogProps {
  readonly id: string;
  readonly onClose: () => void;
}

export function CancelDialog({ id, onClose }: DialogProps) {
  async function cancel(): Promise<void> {
    onClose();
    await council.run(id).cancel();
    toast('Cancelled the run', 'good');
  }
  return (
    <Confirm
      title="Cancel this run?"
      verb="Cancel the run"
      keep="Keep running"
      onConfirm={() => void cancel().catch(toastError)}
      onClose={onClose}
    >
      <p>The events remain, and you can fork the run.</p>
    </Confirm>
  );
}

interface EraseDialogProps extends DialogProps {
  readonly reason: Signal<string>;
}

/** Says what stays. */
export function EraseDialog({ id, reason, onClose }: EraseDialogProps) {
  async function erase(): Promise<void> {
    onClose();
    await council.run(id).erase(reason.value.trim() === '' ? {} : { reason: reason.value.trim() });
    toast('Erased the run', 'good');
    navigate(pageUrl(['runs']));
  }
  return (
    <Confirm
      title="Erase this run?"
      verb="Erase the run"
      keep="Keep it"
      onConfirm={() => void erase().catch(toastError)}
      onClose={onClose}
    >
      <p>
        Topic, material, drafts, feedback and comments are removed for good. What stays: that the run was here, when it
        ended and with which hash, who erased it, why and when, and its tokens, cost and outcome in the overview. Forks
        of it stay whole.
      </p>
      <TextBox
        label="Reason (optional, stays)"
        value={reason.value}
        maxLength={500}
        onType={(text) => (reason.value = text)}
      />
    </Confirm>
  );
}
