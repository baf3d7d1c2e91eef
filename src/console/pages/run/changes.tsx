/** The changes of the draft between two events. */
import type { RunSnapshot } from '../../record/run-record.js';
import { Button, Select } from '../../ui/controls.js';
import type { TextDiffProps } from '../../ui/text-diff.js';
import { DraftDiff } from '../../ui/text-diff.js';
import type { RunStore } from './store.js';

/** The changes between the event shown and another one. */
export function Changes({ store }: { readonly store: RunStore }) {
  const { value: snapshot } = store.snapshot;
  const { value: chosen } = store.comparedWith;
  if (snapshot === null) return null;
  const other = chosen === null ? store.draftBefore.value : store.record.snapshotAt(chosen);
  return (
    <div class="stack">
      <div class="row">
        <Select
          label="Compare with"
          isLabelUnseen
          value={chosen ?? ''}
          options={[
            ['', 'Previous draft'],
            ...eventsToCompare(store, chosen).map((seq) => [seq, `With event ${seq}: ${textAt(store, seq)}`] as const),
          ]}
          onChange={(value) => store.compareWith(value === '' ? null : Number(value))}
        />
        <Button
          slim
          title="Keeps this event for comparison: then select another event"
          onClick={() => store.compareWith(snapshot.seq)}
        >
          Compare from here
        </Button>
      </div>
      {snapshot.draft === null ? (
        <p class="muted">There is no draft at this event.</p>
      ) : chosen === null && other === null ? (
        <p class="muted">This is the first draft.</p>
      ) : (
        <DraftDiff {...inOrder(snapshot, other)} />
      )}
    </div>
  );
}

/** Compares from the earlier event to the later one. */
function inOrder(snapshot: RunSnapshot, other: RunSnapshot | null): TextDiffProps {
  const otherDraft = other === null ? null : other.draft;
  const isLater = other !== null && other.seq > snapshot.seq;
  return isLater ? { before: snapshot.draft, after: otherDraft } : { before: otherDraft, after: snapshot.draft };
}

/** The latest drafts, and the chosen event. */
function eventsToCompare(store: RunStore, chosen: number | null): readonly number[] {
  const drafts = store.landmarks.value.filter(({ kind }) => kind === 'draft').map(({ seq }) => seq);
  const listed = drafts.slice(-100);
  return chosen === null || listed.includes(chosen) ? listed : [chosen, ...listed];
}

function textAt(store: RunStore, seq: number): string {
  const event = store.record.events[seq];
  return event === undefined ? '' : store.textOf(event);
}
