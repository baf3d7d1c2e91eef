/** The drafts at a pause, in full, their changes since the pause before, and the last feedback. */
import type { GodModeState } from '../../../generated/schemas.js';
import { WideOpen } from '../../ui/next-step.js';
import { Prose } from '../../ui/prose.js';
import { DraftDiff } from '../../ui/text-diff.js';
import type { PauseContent } from './pause-content.js';
import { labelIn } from './pause-content.js';

interface DraftsProps {
  readonly content: PauseContent;
  readonly state: GodModeState;
}

export function Drafts({ content, state: { current_state: state, branches = [], next_nodes: next } }: DraftsProps) {
  const { before } = content;
  const feedback = state.feedback_history.at(-1);
  return (
    <>
      {feedback !== undefined && (
        <section class="last-feedback">
          <h3 class="small muted">Last feedback</h3>
          <Prose text={feedback} />
        </section>
      )}
      {branches.length === 0 ? (
        <Draft name="Draft" text={state.current_draft} before={before} />
      ) : (
        branches.map(({ node, current_draft: draft }) => (
          <Draft
            key={node}
            name={`${next.includes(node) ? 'Draft for' : 'Draft waiting at'} ${labelIn(content, node)}`}
            text={draft}
            before={before}
          />
        ))
      )}
    </>
  );
}

interface DraftProps {
  readonly name: string;
  readonly text: string | null;
  /** The draft at the pause before, or null. */
  readonly before: string | null;
}

function Draft({ name, text, before }: DraftProps) {
  if (text === null) return <p class="muted">No draft yet.</p>;
  const isChanged = before !== null && before !== text;
  return (
    <section class="stack">
      {isChanged && (
        <WideOpen look="changes" title={<span class="small muted">Changes since the last pause</span>}>
          <DraftDiff before={before} after={text} />
        </WideOpen>
      )}
      <h3 class="small muted">
        {name}
        {before === text && ', unchanged since the last pause'}
      </h3>
      <Prose text={text} />
    </section>
  );
}
