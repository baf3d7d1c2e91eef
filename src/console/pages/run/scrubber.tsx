/** Selects the event shown, by pointer or keyboard. */
import type { RunEvent } from '../../../client/run-events.js';
import { eventText } from '../../record/event-text.js';
import { Badge, Button } from '../../ui/controls.js';
import { dateTimeText } from '../../ui/time.js';
import type { RunStore, Landmark } from './store.js';

/** Left and right move by an event, with Shift to the next draft or decision. */
export function Scrubber({ store }: { readonly store: RunStore }) {
  const { value: head } = store.head;
  const { value: shown } = store.shown;
  const event = store.record.events[shown];
  const words = event === undefined ? '' : eventText(event);
  function onKeyDown(event: KeyboardEvent): void {
    if (!event.shiftKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
    event.preventDefault();
    store.stride(event.key === 'ArrowRight' ? 1 : -1);
  }
  return (
    <section class="card scrubber" aria-label="Event navigation">
      <div class="row">
        <Steps store={store} />
        <EventShown event={event} words={words} head={head} />
        <Live store={store} />
      </div>
      <div class="scrubber-line">
        <input
          type="range"
          min={0}
          max={Math.max(0, head)}
          value={Math.max(0, shown)}
          aria-label="Event shown"
          aria-valuetext={`Event ${shown} of ${head}: ${words}`}
          title="← → by one event, with Shift to the next draft or decision"
          onInput={(input) => store.goTo(Number(input.currentTarget.value))}
          onKeyDown={onKeyDown}
        />
        <Ticks stops={store.landmarks.value} head={head} />
      </div>
    </section>
  );
}

function EventShown({
  event,
  words,
  head,
}: {
  readonly event: RunEvent | undefined;
  readonly words: string;
  readonly head: number;
}) {
  if (event === undefined) return <span class="grow" />;
  return (
    <p class="grow event-text clamp">
      <span class="muted numeric small">
        {event.seq}/{head}
      </span>{' '}
      {words}{' '}
      <time class="muted small" datetime={event.at}>
        {dateTimeText(event.at)}
      </time>
    </p>
  );
}

function Steps({ store }: { readonly store: RunStore }) {
  const { value: shown } = store.shown;
  const isFirst = shown <= 0;
  const isLast = shown >= store.head.value;
  return (
    <div class="row steps">
      <Button slim label="Previous draft or decision" disabled={isFirst} onClick={() => store.stride(-1)}>
        «
      </Button>
      <Button slim label="Previous event" disabled={isFirst} onClick={() => store.step(-1)}>
        ‹
      </Button>
      <Button slim label="Next event" disabled={isLast} onClick={() => store.step(1)}>
        ›
      </Button>
      <Button slim label="Next draft or decision" disabled={isLast} onClick={() => store.stride(1)}>
        »
      </Button>
    </div>
  );
}

function Live({ store }: { readonly store: RunStore }) {
  if (store.isFollowing.value) return <Badge tone="busy">Live</Badge>;
  if (store.shown.value >= store.head.value) return <Badge>Last event</Badge>;
  return (
    <Button slim onClick={() => store.goTo(null)}>
      {store.isOver.value || !store.source.isLive ? 'Show last event' : 'Back to live'}
    </Button>
  );
}

/** Kinds of marks below the line. */
const TICKS = ['draft', 'score', 'pause', 'decision', 'failure'] as const satisfies readonly Landmark['kind'][];

function Ticks({ stops, head }: { readonly stops: readonly Landmark[]; readonly head: number }) {
  if (head < 1) return null;
  const kinds = TICKS.filter((kind) => stops.some((stop) => stop.kind === kind));
  return (
    <>
      <svg class="ticks" viewBox={`0 0 ${head} 1`} preserveAspectRatio="none" aria-hidden="true">
        {kinds.map((kind) => (
          <path key={kind} class={kind} d={ticksOf(stops, kind)} />
        ))}
      </svg>
      <ul class="legend small muted" aria-label="Marks on the line">
        {kinds.map((kind) => (
          <li key={kind} class={kind}>
            {kind}
          </li>
        ))}
      </ul>
    </>
  );
}

function ticksOf(stops: readonly Landmark[], kind: Landmark['kind']): string {
  return stops.flatMap((stop) => (stop.kind === kind ? [`M${stop.seq} 0V1`] : [])).join('');
}
