/** What a run resulted in beside its draft. Loads with the first of these views. */
import type { ComponentType } from 'preact';
import { Deliberation } from './deliberation.js';
import type { RunStore } from './store.js';
import type { ResultTab } from './tabs.js';
import { Prose } from '../../ui/prose.js';
import { citedSources } from '../../../draft/sources.js';
import { SourceItem } from './sources.js';
import type { RunSnapshot } from '../../record/run-record.js';
import { Button, Select } from '../../ui/controls.js';
import type { TextDiffProps } from '../../ui/text-diff.js';
import { DraftDiff } from '../../ui/text-diff.js';

/** By tab. */
export const VIEWS: Readonly<Record<Exclude<ResultTab, 'draft'>, ComponentType<{ readonly store: RunStore }>>> = {
  changes: Changes,
  feedback: Feedback,
  deliberation: Deliberation,
  sources: Sources,
};

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

/** All sources up to the event shown. */
export function Sources({ store }: { readonly store: RunStore }) {
  const { value: sources } = store.sources;
  if (sources.length === 0) return <p class="muted">No tool has found anything.</p>;
  const { draft = null, finalDraft = null } = store.snapshot.value ?? {};
  const cited = new Set(citedSources(finalDraft ?? draft ?? '', sources));
  return (
    <ul class="card source-list">
      {sources.map((source, at) => (
        <li key={at}>
          <SourceItem {...{ store, source }} />
          <span class="small muted">
            {cited.has(source) && 'Cited in the draft. '}
            {source.readBy.length === 0
              ? 'Read before the fork'
              : `Read by ${source.readBy.map((node) => store.labelOf(node)).join(', ')}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

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
