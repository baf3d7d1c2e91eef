/** The feedback up to the event shown. */
import { Prose } from '../../ui/prose.js';
import type { RunStore } from './store.js';

export function Feedback({ store }: { readonly store: RunStore }) {
  const { feedback = [] } = store.snapshot.value ?? {};
  if (feedback.length === 0) return <p class="muted">No critic or approver has given feedback.</p>;
  return (
    <ol class="stack marked document">
      {feedback.map((text, index) => (
        <li key={index}>
          <Prose text={text} />
        </li>
      ))}
    </ol>
  );
}
