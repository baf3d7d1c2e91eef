/** What a run was at the moment that is looked at: its feedback, its state, and the events up to it. */
import { eventWords, usageWords } from '../../record/words.js';
import type { Fact } from '../../ui/controls.js';
import { Facts } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { Empty } from '../../ui/states.js';
import { lengthText } from '../../record/durations.js';
import { exactly } from '../../ui/time.js';
import { Windowed } from '../../ui/windowed.js';
import type { RunStore } from './store.js';

interface Shown {
  readonly store: RunStore;
}

export function Feedback({ store }: Shown) {
  const { feedback = [] } = store.moment.value ?? {};
  if (feedback.length === 0) return <Empty title="No feedback yet">Critics and people give it.</Empty>;
  return (
    <ol class="stack marked">
      {feedback.map((text, index) => (
        <li key={index}>
          <Prose text={text} />
        </li>
      ))}
    </ol>
  );
}

export function State({ store }: Shown) {
  const { value: moment } = store.moment;
  if (moment === null) return null;
  const facts: readonly Fact[] = [
    ['Status', moment.status],
    ['Topic', moment.topic],
    ['At work', moment.activeNodes.join(', ')],
    ['Waits before', moment.nextNodes.join(', ')],
    ['Drafts', moment.iteration],
    ['Score', moment.score],
    ['Verdict', moment.route],
    ['Feedback', moment.feedback.length],
    ['Branches', moment.branches.map(({ node }) => node).join(', ')],
    ['Instance', moment.owner],
    ['Used', usageWords(moment.usage)],
    ['Waited', moment.waitedMs === 0 ? null : lengthText(moment.waitedMs)],
    ['Error', moment.error],
  ];
  const none = <span class="muted">none</span>;
  return <Facts facts={facts.map(([name, value]) => [name, value === null || value === '' ? none : value])} />;
}

const ROW_PX = 34;

export function Events({ store }: Shown) {
  const { value: shown } = store.shown;
  return (
    <Windowed
      label="Events"
      count={store.head.value + 1}
      rowHeight={ROW_PX}
      current={shown}
      row={(seq) => {
        const event = store.record.events[seq];
        if (event === undefined) return null;
        const words = eventWords(event);
        return (
          <button
            type="button"
            class={`event${seq > shown ? ' later' : ''}`}
            aria-current={seq === shown ? 'true' : undefined}
            title={`${words}\n${exactly(event.at)}`}
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

/** The event there, as it is recorded. */
export function RawEvent({ store }: Shown) {
  const event = store.record.events[store.shown.value];
  if (event === undefined) return null;
  const { seq, id, type, at, data, hash } = event;
  const previous = store.record.events[seq - 1]?.hash ?? null;
  return (
    <section class="raw-event stack" aria-label="Raw event">
      <h3>
        Event {seq}: {type}
      </h3>
      <p class="small muted">
        <time datetime={at}>{exactly(at)}</time>
      </p>
      <pre class="raw" tabIndex={0}>
        {JSON.stringify({ seq, id, type, at, data }, null, 2)}
      </pre>
      <Facts
        facts={[
          ['Hash', <code>{hash}</code>],
          ['Hash of the event before', previous === null ? 'none: it is the first' : <code>{previous}</code>],
        ]}
      />
    </section>
  );
}
