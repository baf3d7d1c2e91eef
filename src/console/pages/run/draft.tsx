/** The draft at the moment that is looked at, as it is written, and what changed since another moment. */
import type { Moment } from '../../record/run-record.js';
import { eventWords } from '../../record/words.js';
import { Button, Select } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { Empty } from '../../ui/states.js';
import type { TextDiffProps } from '../../ui/text-diff.js';
import { DraftDiff } from '../../ui/text-diff.js';
import type { RunStore, Writing } from './store.js';

interface Shown {
  readonly store: RunStore;
}

/** What is being written comes first: it is what somebody who watches waits for. */
export function Draft({ store }: Shown) {
  const { value: moment } = store.moment;
  const writing = store.isFollowing.value ? store.tokens.value : [];
  if (moment === null) return null;
  return (
    <div class="stack">
      {writing.map((each) => (
        <Written key={each.step} writing={each} by={store.labelOf(each.node)} />
      ))}
      {drafts(moment).map(({ node, draft }) => (
        <section key={node} class="stack" aria-label={node ?? 'Draft'}>
          <h3 class="small muted">{node === null ? draftWords(moment) : store.labelOf(node)}</h3>
          <Prose text={draft} />
        </section>
      ))}
      {writing.length === 0 && drafts(moment).length === 0 && (
        <Empty title="No draft yet">
          {moment.activeNodes.length === 0
            ? null
            : `${moment.activeNodes.map((node) => store.labelOf(node)).join(', ')}: at work.`}
        </Empty>
      )}
    </div>
  );
}

function Written({ writing: { text, from, attempt }, by }: { readonly writing: Writing; readonly by: string }) {
  return (
    <section class="writing stack" aria-label={`${by} is writing`}>
      <h3 class="small">
        {by} is writing{attempt > 1 && `, attempt ${attempt}`}
      </h3>
      {from > 0 && <p class="small muted">Its beginning comes when it is done.</p>}
      <Prose text={text} />
    </section>
  );
}

interface NodeDraft {
  /** Null: there is but one. */
  readonly node: string | null;
  readonly draft: string;
}

/** Each live branch's where there are several. */
function drafts({ draft, finalDraft, branches }: Moment): readonly NodeDraft[] {
  const several = branches.flatMap(({ node, draft: own }) => (own === null ? [] : [{ node, draft: own }]));
  if (several.length > 1) return several;
  const one = finalDraft ?? draft;
  return one === null ? [] : [{ node: null, draft: one }];
}

function draftWords({ iteration, finalDraft }: Moment): string {
  return finalDraft === null ? `Draft ${iteration}` : `Final draft, after ${iteration}`;
}

/** Any two moments: the one looked at, and one that is chosen or held on to. */
export function Changes({ store }: Shown) {
  const { value: moment } = store.moment;
  const { value: chosen } = store.comparedWith;
  if (moment === null) return null;
  const other = chosen === null ? store.draftBefore.value : store.record.momentAt(chosen);
  return (
    <div class="stack">
      <div class="row">
        <Select
          label="Compare with"
          isLabelUnseen
          value={chosen ?? ''}
          options={[
            ['', 'With the draft before'],
            ...momentsToCompare(store, chosen).map(
              (seq) => [seq, `With event ${seq}: ${wordsAt(store, seq)}`] as const,
            ),
          ]}
          onChange={(value) => store.compareWith(value === '' ? null : Number(value))}
        />
        <Button slim title="Then look at another moment" onClick={() => store.compareWith(moment.seq)}>
          Compare from here
        </Button>
      </div>
      {moment.draft === null ? (
        <Empty title="No draft yet" />
      ) : chosen === null && other === null ? (
        <Empty title="The first draft" />
      ) : (
        <DraftDiff {...inOrder(moment, other)} />
      )}
    </div>
  );
}

/** Changes are told from the earlier moment to the later one. */
function inOrder(moment: Moment, other: Moment | null): TextDiffProps {
  const otherDraft = other === null ? null : other.draft;
  const isLater = other !== null && other.seq > moment.seq;
  return isLater ? { before: moment.draft, after: otherDraft } : { before: otherDraft, after: moment.draft };
}

/** Where drafts came, the latest that fit into a list; and the one that is chosen. */
function momentsToCompare(store: RunStore, chosen: number | null): readonly number[] {
  const drafts = store.stops.value.filter(({ kind }) => kind === 'draft').map(({ seq }) => seq);
  const listed = drafts.slice(-100);
  return chosen === null || listed.includes(chosen) ? listed : [chosen, ...listed];
}

function wordsAt(store: RunStore, seq: number): string {
  const event = store.record.events[seq];
  return event === undefined ? '' : eventWords(event);
}
