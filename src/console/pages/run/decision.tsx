/** What the user's decision on a pause needs: the comment, the call, and the message after it. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { StalePauseError } from '../../../client/errors.js';
import type { DecisionOptions, Pause } from '../../../client/pause.js';
import { excerpt } from '../../record/counts.js';
import { toast, toastError } from '../../shell/toasts.js';
import { TextBox } from '../../ui/controls.js';

/** A pause, and the topic of its run. */
export interface DecidedPause {
  readonly pause: Pause;
  readonly topic: string;
}

/** The comment of a decision, and a function that sends the decision once. */
export function useDecision({ topic }: Pick<DecidedPause, 'topic'>) {
  const comment = useSignal('');
  const isBusy = useSignal(false);
  /** @param done what the decision did, such as `Approved` */
  async function send(done: string, decide: (options: DecisionOptions) => Promise<unknown>): Promise<void> {
    isBusy.value = true;
    try {
      await decide(comment.value.trim() === '' ? {} : { comment: comment.value });
      toast(`${done} “${excerpt(topic, 60)}”`, 'good');
    } catch (error) {
      if (error instanceof StalePauseError) toast('Too late: another user has already decided this pause.', 'wait');
      else toastError(error);
      isBusy.value = false;
    }
  }
  return { comment, isBusy: isBusy.value, send };
}

export function CommentBox({ comment }: { readonly comment: Signal<string> }) {
  return (
    <TextBox
      label="Comment"
      isLabelUnseen
      placeholder="Comment (recorded with the decision)"
      value={comment.value}
      onType={(text) => (comment.value = text)}
    />
  );
}
