/** Selects the event shown, by pointer or keyboard: a thin line that opens when it is touched. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { countOf } from '../../record/counts.js';
import { Badge, Button } from '../../ui/controls.js';
import { Icon } from '../../ui/icon.js';
import { dateTimeText } from '../../ui/time.js';
import type { Landmark } from '../../record/landmarks.js';
import type { RunStore } from './store.js';

/** Left and right move by an event, with Shift to the next draft or decision. */
export function Scrubber({ store }: { readonly store: RunStore }) {
  const { value: head } = store.head;
  const { value: shown } = store.shown;
  const event = store.record.events[shown];
  const words = event === undefined ? '' : store.textOf(event);
  // Stays open: if it closed without the focus, the page would move away under a click elsewhere.
  const isTouched = useSignal(false);
  const isOpen = isTouched.value || store.at.value !== null;
  function onKeyDown(event: KeyboardEvent): void {
    if (!event.shiftKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
    event.preventDefault();
    store.stride(event.key === 'ArrowRight' ? 1 : -1);
  }
  return (
    <section
      class={`scrubber${isOpen ? ' open' : ''}`}
      aria-label="Event navigation"
      onFocusIn={() => (isTouched.value = true)}
    >
      <Play store={store} />
      <div class="scrubber-line">
        <input
          type="range"
          min={0}
          max={Math.max(0, head)}
          value={Math.max(0, shown)}
          aria-label="Event shown"
          aria-valuetext={`${shown + 1} of ${head + 1}: ${words}`}
          title="← → by one event, with Shift to the next draft or decision"
          onInput={(input) => store.goTo(Number(input.currentTarget.value))}
          onKeyDown={onKeyDown}
        />
        <Ticks stops={store.landmarks.value} head={head} />
      </div>
      <span class="muted numeric small" title={`${shown + 1} of ${countOf(head + 1, 'event')}`}>
        {shown + 1}/{head + 1}
      </span>
      <Live store={store} />
      <div class="scrubber-more">
        <Steps store={store} />
        {event !== undefined && (
          <p class="event-text clamp">
            {words}{' '}
            <time class="muted small" datetime={event.at}>
              event {event.seq}, {dateTimeText(event.at)}
            </time>
          </p>
        )}
      </div>
    </section>
  );
}

/** The time that a replay takes at most, and the shortest time that it shows an event, in milliseconds. */
const [REPLAY_MS, EVENT_MS] = [30_000, 600];

/** Replays the run from the event shown, or from its first at the last. */
function Play({ store }: { readonly store: RunStore }) {
  const isPlaying = useSignal(false);
  useEffect(() => {
    if (!isPlaying.value) return undefined;
    if (store.shown.value >= store.head.value) store.goTo(0);
    const by = Math.max(1, Math.ceil((store.head.value * EVENT_MS) / REPLAY_MS));
    const timer = window.setInterval(() => {
      store.step(by);
      if (store.shown.value >= store.head.value) isPlaying.value = false;
    }, EVENT_MS);
    return () => window.clearInterval(timer);
  }, [isPlaying.value]);
  return (
    <Button
      slim
      tone="plain"
      label={isPlaying.value ? 'Pause the replay' : 'Play the events'}
      disabled={store.head.value < 1}
      onClick={() => (isPlaying.value = !isPlaying.value)}
    >
      <Icon name={isPlaying.value ? 'pause' : 'play'} />
    </Button>
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

/** Whether the page follows the run, or a button to the last event. */
function Live({ store }: { readonly store: RunStore }) {
  const { value: isFollowing } = store.isFollowing;
  if (!isFollowing && store.shown.value >= store.head.value) return null;
  return (
    <div class="scrubber-live">
      {isFollowing ? (
        <Badge tone="busy">Live</Badge>
      ) : (
        <Button slim onClick={() => store.goTo(null)}>
          {store.isOver.value || !store.source.isLive ? 'Show last event' : 'Back to live'}
        </Button>
      )}
    </div>
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
