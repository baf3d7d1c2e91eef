/** What a step's model was given. */
import type { Execution } from '../../record/executions.js';
import type { RunStore } from './store.js';

export function StepPrompt({ execution }: { readonly store: RunStore; readonly execution: Execution }) {
  const { inputHash = '' } = execution.attempts.at(-1) ?? {};
  return (
    <p class="small muted">
      Hash of its prompt <code class="break">{inputHash}</code>
    </p>
  );
}
