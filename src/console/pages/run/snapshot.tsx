/** The run at the event shown: its state and its events. */
import { useSignal } from '@preact/signals';
import type { Fold } from '../../record/event-rows.js';
import { eventRows } from '../../record/event-rows.js';
import { usageText } from '../../record/usage-text.js';
import type { Fact } from '../../ui/controls.js';
import { Facts } from '../../ui/controls.js';
import { lengthText } from '../../record/durations.js';
import { dateTimeText } from '../../ui/time.js';
import { LongText } from '../../ui/long-text.js';
import { Windowed } from '../../ui/windowed.js';
import { outcomeOf } from '../../record/outcome.js';
import { errorAt } from '../../record/event-text.js';
import type { RunStore } from './store.js';

interface Shown {
  readonly store: RunStore;
}

export function State({ store }: Shown) {
  const { value: snapshot } = store.snapshot;
  if (snapshot === null) return null;
  const facts: readonly Fact[] = [
    ['Status', outcomeOf(snapshot.status, snapshot.error)],
    ['Topic', snapshot.topic],
    ['At work', labelsOf(store, snapshot.activeNodes)],
    ['Waiting for a decision', labelsOf(store, snapshot.nextNodes)],
    ['Drafts', snapshot.iteration],
    ['Score', snapshot.score],
    ['Verdict', snapshot.route],
    ['Feedback', snapshot.feedback.length],
    [
      'Branches',
      labelsOf(
        store,
        snapshot.branches.map(({ node }) => node),
      ),
    ],
    ['Instance', snapshot.owner],
    ['Usage', usageText(snapshot.usage)],
    ['Time in pauses', snapshot.waitedMs === 0 ? null : lengthText(snapshot.waitedMs)],
    ['Error', errorAt(store.record.events, snapshot.seq, store.names.value)],
  ];
  const none = <span class="muted">none</span>;
  return <Facts facts={facts.map(([name, value]) => [name, value === null || value === '' ? none : value])} />;
}

function labelsOf(store: RunStore, nodes: readonly string[]): string {
  return nodes.map((node) => store.labelOf(node)).join(', ');
}

const ROW_PX = 34;

export function Events({ store }: Shown) {
  const { value: shown } = store.shown;
  const { events } = store.record;
  /** Folds that the user has opened or closed, by their first event. */
  const opened = useSignal<ReadonlyMap<number, boolean>>(new Map());
  const rows = eventRows(events, store.head.value + 1, { opened: (seq) => opened.value.get(seq), shown });
  return (
    <Windowed
      label="Events"
      count={rows.length}
      rowHeight={ROW_PX}
      current={rows.findIndex(({ seq, fold }) => (fold === null ? seq === shown : isFolded(fold, seq, shown)))}
      row={(index) => {
        const { seq = 0, fold = null } = rows[index] ?? {};
        const event = events[seq];
        if (event === undefined) return null;
        if (fold !== null) {
          const toggle = (): void => void (opened.value = new Map(opened.value).set(seq, !fold.isOpen));
          return <FoldRow label={store.labelOf(fold.node)} {...{ seq, fold, toggle, isLater: seq > shown }} />;
        }
        const words = store.textOf(event);
        return (
          <button
            type="button"
            class={`event${seq > shown ? ' later' : ''}`}
            aria-current={seq === shown ? 'true' : undefined}
            title={`${words}\n${dateTimeText(event.at)}`}
            onClick={() => store.goTo(seq)}
          >
            <span class="numeric muted small">{seq}</span>
            <span class="clip">{words}</span>
          </button>
        );
      }}
    />
  );
}

function isFolded({ last, isOpen }: Fold, seq: number, shown: number): boolean {
  return !isOpen && seq <= shown && shown <= last;
}

/** The row of the events of a panel, rank or jury, which opens into them. */
function FoldRow({
  label,
  seq,
  fold: { last, isOpen },
  toggle,
  isLater,
}: {
  readonly label: string;
  readonly seq: number;
  readonly fold: Fold;
  readonly toggle: () => void;
  readonly isLater: boolean;
}) {
  const words = `${label}: ${last - seq + 1} events of its members`;
  return (
    <button
      type="button"
      class={`event${isLater ? ' later' : ''}`}
      aria-expanded={isOpen}
      title={isOpen ? 'Close these events' : 'Open these events'}
      onClick={toggle}
    >
      <span class="numeric muted small">{isOpen ? '▾' : '▸'}</span>
      <span class="clip">{words}</span>
    </button>
  );
}

/** The recorded event. */
export function RawEvent({ store }: Shown) {
  const event = store.record.events[store.shown.value];
  if (event === undefined) return null;
  const { seq, id, type, at, data, hash } = event;
  const previous = store.record.events[seq - 1]?.hash ?? null;
  return (
    <section class="card" aria-label="Raw event">
      <h3>
        Event {seq}: {type}
      </h3>
      <p class="small muted">
        <time datetime={at}>{dateTimeText(at)}</time>
      </p>
      <LongText text={JSON.stringify({ seq, id, type, at, data }, null, 2)} />
      <Facts
        facts={[
          ['Hash', <code>{hash}</code>],
          ['Previous hash', previous === null ? 'none (first event)' : <code>{previous}</code>],
        ]}
      />
    </section>
  );
}
