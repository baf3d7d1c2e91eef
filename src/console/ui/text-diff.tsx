/** Shows the changes between two texts: added and removed words, with unchanged lines folded. */
import { useSignal } from '@preact/signals';
import { useContext, useMemo } from 'preact/hooks';
import { draftTree } from '../../draft/draft-tree.js';
import { plainDraft } from '../record/plain-draft.js';
import { withCitations } from '../../draft/sources.js';
import type { DiffBlock } from '../record/text-diff.js';
import { textDiff } from '../record/text-diff.js';
import { countOf } from '../record/counts.js';
import { markdown, useChunk } from './chunks.js';
import { Citations } from './prose.js';
import { Loading } from './states.js';

/** Smallest number of unchanged lines to fold, and lines shown at either end of a fold. */
const [FOLD_LINES, SHOWN_LINES] = [6, 2];

export interface TextDiffProps {
  /** Or null if there is no text. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Compares two drafts as plain text, or as Markdown if they differ only in Markdown signs. */
export function DraftDiff({ before, after }: TextDiffProps) {
  const { value: loaded } = useChunk(markdown).state;
  const citations = useContext(Citations);
  const [previous, current] = useMemo(() => {
    if (loaded.status !== 'ready') return [];
    return [before, after].map(
      (draft) => draft && plainDraft(withCitations(draftTree(loaded.value.tokensOf(draft)), citations)),
    );
  }, [loaded, before, after, citations]);
  if (loaded.status === 'loading') return <Loading what="the changes" />;
  if (previous === current) return <TextDiff {...{ before, after }} />;
  return <TextDiff before={previous ?? null} after={current ?? null} />;
}

export function TextDiff({ before, after }: TextDiffProps) {
  const diff = useMemo(() => textDiff(before, after), [before, after]);
  const { addedWords, removedWords, blocks } = diff;
  if (blocks.flat().every(({ kind }) => kind === 'same')) return <p class="muted">No changes.</p>;
  return (
    <div class="stack">
      <p class="small muted">
        {countOf(addedWords, 'word')} added, {removedWords} removed
      </p>
      <div class="text-diff">
        {blocks.map((block, index) => (
          <Block key={`${index} ${block[0]?.kind}`} segments={block} />
        ))}
      </div>
    </div>
  );
}

function Block({ segments }: { readonly segments: DiffBlock }) {
  const isOpen = useSignal(false);
  const lines = segments.length === 1 && segments[0]?.kind === 'same' ? segments[0].text.split('\n') : [];
  if (lines.length >= FOLD_LINES && !isOpen.value) {
    return (
      <>
        <div>{lines.slice(0, SHOWN_LINES).join('\n')}</div>
        <button type="button" class="fold small" onClick={() => (isOpen.value = true)}>
          {countOf(lines.length - 2 * SHOWN_LINES, 'unchanged line')}
        </button>
        <div>{lines.slice(-SHOWN_LINES).join('\n')}</div>
      </>
    );
  }
  return (
    <div>
      {segments.map((segment, index) => {
        if (segment.kind === 'same') return segment.text;
        const Mark = segment.kind === 'added' ? 'ins' : 'del';
        return (
          <Mark key={index} class={segment.kind}>
            {segment.text}
          </Mark>
        );
      })}
    </div>
  );
}
