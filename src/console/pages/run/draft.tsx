/** The draft at the event shown, drafts that are being written, and changes since another event. */
import type { RunSnapshot } from '../../record/run-record.js';
import { countOf } from '../../record/counts.js';
import { eventText } from '../../record/event-text.js';
import { Button, Select } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { Empty } from '../../ui/states.js';
import type { TextDiffProps } from '../../ui/text-diff.js';
import { DraftDiff } from '../../ui/text-diff.js';
import type { RunStore } from './store.js';
import type { Writing } from './writings.js';

interface Shown {
  readonly store: RunStore;
}

/** Drafts that are being written come first. */
export function Draft({ store }: Shown) {
  const { value: snapshot } = store.snapshot;
  const writing = store.isFollowing.value ? store.tokens.value : [];
  if (snapshot === null) return null;
  return (
    <div class="stack">
      {writing.map((each) => (
        <DraftInProgress key={each.step} writing={each} by={store.labelOf(each.node, each.member)} />
      ))}
      {drafts(snapshot).map(({ node, draft }) => (
        <section key={node} class="stack" aria-label={node ?? 'Draft'}>
          <h3 class="small muted">{node === null ? draftTitle(snapshot) : store.labelOf(node)}</h3>
          <Prose text={draft} />
        </section>
      ))}
      {writing.length === 0 && drafts(snapshot).length === 0 && (
        <Empty title="No draft yet">
          {snapshot.activeNodes.length === 0
            ? null
            : `${snapshot.activeNodes.map((node) => store.labelOf(node)).join(', ')}: running.`}
        </Empty>
      )}
    </div>
  );
}

function DraftInProgress({ writing: { text, from, attempt }, by }: { readonly writing: Writing; readonly by: string }) {
  return (
    <section class="writing stack" aria-label={`${by} is writing`}>
      <h3 class="small">
        {by} is writing{attempt > 1 && `, attempt ${attempt}`}
      </h3>
      {from > 0 && <p class="small muted">The beginning appears when the draft is finished.</p>}
      <Prose text={text} />
    </section>
  );
}

interface NodeDraft {
  /** Or null if there is only one branch. */
  readonly node: string | null;
  readonly draft: string;
}

/** The drafts of all live branches. */
function drafts({ draft, finalDraft, branches }: RunSnapshot): readonly NodeDraft[] {
  const several = branches.flatMap(({ node, draft: own }) => (own === null ? [] : [{ node, draft: own }]));
  if (several.length > 1) return several;
  const one = finalDraft ?? draft;
  return one === null ? [] : [{ node: null, draft: one }];
}

function draftTitle({ iteration, finalDraft }: RunSnapshot): string {
  return finalDraft === null ? `Draft ${iteration}` : `Final draft after ${countOf(iteration, 'iteration')}`;
}

/** The changes between the event shown and another one. */
export function Changes({ store }: Shown) {
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
        <Empty title="No draft yet" />
      ) : chosen === null && other === null ? (
        <Empty title="This is the first draft" />
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
  return event === undefined ? '' : eventText(event);
}
