/** The draft at the event shown as a document, with its sources, and drafts that are being written. */
import { useMemo } from 'preact/hooks';
import type { DraftSource } from '../../../generated/schemas.js';
import type { RunSnapshot } from '../../record/run-record.js';
import { citationsOf, citedSources } from '../../../draft/sources.js';
import { pauseKey } from '../../shell/pending-approvals.js';
import { onDraftSeen } from '../../shell/reviews.js';
import { OnScreen } from '../../ui/on-screen.js';
import { DraftText } from '../../ui/draft-text.js';
import { Prose } from '../../ui/prose.js';
import { MissingQuotations, QuotationsNote, SourceItem, hrefOf } from './sources.js';
import type { RunStore } from './store.js';
import type { Writing } from './writings.js';

interface Shown {
  readonly store: RunStore;
}

/** Drafts that are being written come first. */
export function Draft({ store }: Shown) {
  const { value: snapshot } = store.snapshot;
  if (snapshot === null) return null;
  const writing = store.isFollowing.value ? store.tokens.value : [];
  const shown = draftsIn(snapshot);
  const pause = store.isFollowing.value ? snapshot.pause : null;
  const key = pause && pauseKey({ run_id: store.source.id, expected_seq: pause.seq });
  return (
    <div class="document">
      {writing.map((each) => (
        <DraftInProgress key={each.step} writing={each} by={store.labelOf(each.node, each.member)} />
      ))}
      {key !== null && <OnScreen of={key} onSeen={() => void onDraftSeen(key, snapshot.draft)} />}
      {shown.map(({ node, draft }) => {
        const title = node === null ? draftTitle(snapshot) : store.labelOf(node);
        return <DraftDocument key={node} {...{ store, title, draft }} />;
      })}
      {writing.length + shown.length === 0 && <p class="muted">{noDraft(store, snapshot)}</p>}
    </div>
  );
}

interface DocumentProps extends Shown {
  readonly title: string;
  readonly draft: string;
}

function DraftDocument({ store, title, draft }: DocumentProps) {
  const { value: sources } = store.sources;
  const { value: names } = store.documentNames;
  const quoted = store.cited.value.draft === draft ? store.cited.value.sources : NOTHING;
  const cited = useMemo(() => citedSources(draft, sources), [draft, sources]);
  const citations = useMemo(
    () => citationsOf(cited, { names, hrefOf: (source) => hrefOf(store, source) }),
    [cited, names],
  );
  return (
    <section aria-label="Draft">
      <h2 class="small muted">{title}</h2>
      <DraftText {...{ text: draft, citations, quoted }} />
      {(cited.length > 0 || quoted.length > 0) && (
        <section class="sources" aria-label="Sources">
          <h3>Sources</h3>
          <QuotationsNote cited={quoted} />
          <ol class="marked">
            {cited.map((source, at) => (
              <li key={at}>
                <SourceItem {...{ store, source }} />
                <MissingQuotations {...{ source, cited: quoted }} />
              </li>
            ))}
          </ol>
        </section>
      )}
    </section>
  );
}

const NOTHING: readonly DraftSource[] = [];

function noDraft(store: RunStore, { activeNodes, status }: RunSnapshot): string {
  if (status === 'failed' || status === 'completed') return 'The run ended without a draft.';
  if (activeNodes.length === 0) return 'There is no draft yet.';
  return `There is no draft yet. At work: ${activeNodes.map((node) => store.labelOf(node)).join(', ')}.`;
}

function DraftInProgress({ writing: { text, from, attempt }, by }: { readonly writing: Writing; readonly by: string }) {
  return (
    <section class="writing stack" aria-label={`${by} is writing`}>
      <h2 class="small">
        {by} is writing{attempt > 1 && `, attempt ${attempt}`}
      </h2>
      {from > 0 && <p class="small muted">The beginning appears when the draft is finished.</p>}
      <Prose text={text} />
    </section>
  );
}

export interface NodeDraft {
  /** Or null if there is only one branch. */
  readonly node: string | null;
  readonly draft: string;
}

/** The final draft, or the drafts of all live branches. */
export function draftsIn({ draft, finalDraft, branches }: RunSnapshot): readonly NodeDraft[] {
  const several = branches.flatMap(({ node, draft: own }) => (own === null ? [] : [{ node, draft: own }]));
  if (several.length > 1) return several;
  const one = finalDraft ?? draft;
  return one === null ? [] : [{ node: null, draft: one }];
}

function draftTitle({ iteration, finalDraft }: RunSnapshot): string {
  return finalDraft === null ? `Draft ${iteration}` : 'Final draft';
}
